// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver's pitched allocations, and 2D and 3D copies.
#include "driver_support.h"
#include "engine/checked_size.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "engine/stream.h"
#include "engine/transfer.h"
#include "musa.h"

using namespace musa_emulator;

namespace {

constexpr size_t kPitchAlignment = 512;

// Computes the address of the first byte of a copy's source or destination. Arrays are not supported.
musaError_t side(
    MUmemorytype type, const void* host, MUdeviceptr device, size_t x, size_t y, size_t z, size_t pitch, size_t height,
    char** address) {
  switch (type) {
    case MU_MEMORYTYPE_HOST: *address = static_cast<char*>(const_cast<void*>(host)); break;
    case MU_MEMORYTYPE_DEVICE:
    case MU_MEMORYTYPE_UNIFIED: *address = reinterpret_cast<char*>(static_cast<uintptr_t>(device)); break;
    case MU_MEMORYTYPE_ARRAY: return musaErrorNotSupported;
    default: return musaErrorInvalidValue;
  }
  const size_t offset = checked_sum(checked_product(checked_sum(checked_product(z, height), y), pitch), x);
  if (*address == nullptr || offset > kAddressLimit) {
    return musaErrorInvalidValue;
  }
  *address += offset;
  return musaSuccess;
}

musaMemcpyKind kind_of(MUmemorytype from, MUmemorytype to) {
  if (from == MU_MEMORYTYPE_UNIFIED || to == MU_MEMORYTYPE_UNIFIED) {
    return musaMemcpyDefault;
  }
  return from == MU_MEMORYTYPE_HOST ? (to == MU_MEMORYTYPE_HOST ? musaMemcpyHostToHost : musaMemcpyHostToDevice)
      : to == MU_MEMORYTYPE_HOST    ? musaMemcpyDeviceToHost
                                    : musaMemcpyDeviceToDevice;
}

musaError_t copy_box(const MUSA_MEMCPY3D& box, MUstream stream, Host host) {
  Stream* found = resolve_stream(stream);
  if (found == nullptr) {
    return musaErrorInvalidResourceHandle;
  }
  char *from, *to;
  musaError_t status = side(
      box.srcMemoryType, box.srcHost, box.srcDevice, box.srcXInBytes, box.srcY, box.srcZ, box.srcPitch, box.srcHeight,
      &from);
  if (status == musaSuccess) {
    status = side(
        box.dstMemoryType, box.dstHost, box.dstDevice, box.dstXInBytes, box.dstY, box.dstZ, box.dstPitch, box.dstHeight,
        &to);
  }
  if (status != musaSuccess) {
    return status;
  }
  // The pitch matters only with several rows, the height only with several slices.
  const bool rows = box.Height > 1 || box.Depth > 1;
  if ((rows &&
       (checked_sum(box.srcXInBytes, box.WidthInBytes) > box.srcPitch ||
        checked_sum(box.dstXInBytes, box.WidthInBytes) > box.dstPitch)) ||
      (box.Depth > 1 &&
       (checked_sum(box.srcY, box.Height) > box.srcHeight || checked_sum(box.dstY, box.Height) > box.dstHeight))) {
    return musaErrorInvalidValue;
  }
  if (box.WidthInBytes == 0 || box.Height == 0 || box.Depth == 0) {
    return musaSuccess;
  }
  CopyOperation copy = linear_copy(to, from, box.WidthInBytes, kind_of(box.srcMemoryType, box.dstMemoryType));
  copy.height = box.Height;
  copy.depth = box.Depth;
  copy.src_pitch = box.srcPitch;
  copy.dst_pitch = box.dstPitch;
  copy.src_slice = checked_product(box.srcPitch, box.srcHeight);
  copy.dst_slice = checked_product(box.dstPitch, box.dstHeight);
  return submit_copy(*found, std::move(copy), host);
}

musaError_t copy_plane(const MUSA_MEMCPY2D* plane, MUstream stream, Host host) {
  if (plane == nullptr) {
    return musaErrorInvalidValue;
  }
  MUSA_MEMCPY3D box{};
  box.srcXInBytes = plane->srcXInBytes;
  box.srcY = plane->srcY;
  box.srcMemoryType = plane->srcMemoryType;
  box.srcHost = plane->srcHost;
  box.srcDevice = plane->srcDevice;
  box.srcPitch = plane->srcPitch;
  box.dstXInBytes = plane->dstXInBytes;
  box.dstY = plane->dstY;
  box.dstMemoryType = plane->dstMemoryType;
  box.dstHost = plane->dstHost;
  box.dstDevice = plane->dstDevice;
  box.dstPitch = plane->dstPitch;
  box.WidthInBytes = plane->WidthInBytes;
  box.Height = plane->Height;
  box.Depth = 1;
  return copy_box(box, stream, host);
}

} // namespace

MUresult muMemAllocPitch(MUdeviceptr* pointer, size_t* pitch, size_t width, size_t height, unsigned int element_bytes) {
  return driver_api<"muMemAllocPitch", kUnsafeInCapture>([&] {
    const bool element = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
    if (pointer == nullptr || pitch == nullptr || !element || width == 0 || height == 0 || width > SIZE_MAX / 2) {
      return musaErrorInvalidValue;
    }
    const size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    if (row > SIZE_MAX / 2 / height) {
      return musaErrorMemoryAllocation;
    }
    void* memory = nullptr;
    const musaError_t status = allocate_device(current_device()->ordinal, row * height, &memory);
    if (status == musaSuccess) {
      *pitch = row;
      *pointer = static_cast<MUdeviceptr>(reinterpret_cast<uintptr_t>(memory));
    }
    return status;
  });
}

MUresult muMemcpy2D(const MUSA_MEMCPY2D* copy) {
  return driver_api<"muMemcpy2D">([&] { return copy_plane(copy, nullptr, Host::Waits); });
}
MUresult muMemcpy2DAsync(const MUSA_MEMCPY2D* copy, MUstream stream) {
  return driver_api<"muMemcpy2DAsync">([&] { return copy_plane(copy, stream, Host::Continues); });
}
MUresult muMemcpy3D(const MUSA_MEMCPY3D* copy) {
  return driver_api<"muMemcpy3D">(
      [&] { return copy != nullptr ? copy_box(*copy, nullptr, Host::Waits) : musaErrorInvalidValue; });
}
MUresult muMemcpy3DAsync(const MUSA_MEMCPY3D* copy, MUstream stream) {
  return driver_api<"muMemcpy3DAsync">(
      [&] { return copy != nullptr ? copy_box(*copy, stream, Host::Continues) : musaErrorInvalidValue; });
}
