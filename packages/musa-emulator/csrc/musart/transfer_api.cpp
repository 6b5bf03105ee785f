// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/transfer.h"

#include "api_support.h"
#include "engine/memory.h"

using namespace musa_emulator;

namespace {

musaError_t copy_2d(
    void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, musaMemcpyKind kind,
    musaStream_t stream, Host host) {
  return with_stream(stream, [&](Stream& found) {
    if (width > dpitch || width > spitch) {
      return musaErrorInvalidPitchValue;
    }
    CopyOperation copy = linear_copy(dst, src, width, kind);
    copy.height = height;
    copy.dst_pitch = dpitch;
    copy.src_pitch = spitch;
    return submit_copy(found, std::move(copy), host);
  });
}

musaError_t copy_3d(const musaMemcpy3DParms* parameters, musaStream_t stream, Host host) {
  return with_stream(stream, [&](Stream& found) {
    if (parameters == nullptr) {
      return musaErrorInvalidValue;
    }
    CopyOperation copy{};
    const musaError_t status = box_copy(*parameters, &copy);
    return status == musaSuccess ? submit_copy(found, std::move(copy), host) : status;
  });
}

musaError_t copy_peer(
    void* dst, int dst_device, const void* src, int src_device, size_t bytes, musaStream_t stream, Host host) {
  return with_stream(stream, [&](Stream& found) {
    if (find_device(dst_device) == nullptr || find_device(src_device) == nullptr) {
      return musaErrorInvalidDevice;
    }
    const auto belongs = [](const void* pointer, int device) {
      const PointerInfo info = classify(pointer);
      return info.type != musaMemoryTypeDevice || info.device == device;
    };
    if (!belongs(dst, dst_device) || !belongs(src, src_device)) {
      return musaErrorInvalidValue;
    }
    return submit_copy(found, linear_copy(dst, src, bytes, musaMemcpyDeviceToDevice), host);
  });
}

musaError_t fill(const FillOperation& operation, musaStream_t stream, Host host) {
  return with_stream(stream, [&](Stream& found) { return submit_fill(found, operation, host); });
}

FillOperation fill_bytes(void* pointer, int value, size_t width, size_t height = 1, size_t pitch = 0) {
  FillOperation operation{};
  operation.dst = static_cast<char*>(pointer);
  operation.value = static_cast<unsigned char>(value);
  operation.width = width;
  operation.height = height;
  operation.pitch = pitch;
  return operation;
}

FillOperation fill_slices(const musaPitchedPtr& pitched, int value, const musaExtent& extent) {
  FillOperation operation = fill_bytes(pitched.ptr, value, extent.width, extent.height, pitched.pitch);
  operation.depth = extent.depth;
  operation.slice = checked_product(pitched.pitch, pitched.ysize);
  return operation;
}

} // namespace

musaError_t musaMemcpy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  return api<"musaMemcpy">([&] {
    return with_stream(
        nullptr, [&](Stream& stream) { return submit_copy(stream, linear_copy(dst, src, bytes, kind), Host::Waits); });
  });
}

musaError_t musaMemcpyAsync(void* dst, const void* src, size_t bytes, musaMemcpyKind kind, musaStream_t stream) {
  return api<"musaMemcpyAsync">([&] {
    return with_stream(
        stream, [&](Stream& found) { return submit_copy(found, linear_copy(dst, src, bytes, kind), Host::Continues); });
  });
}

musaError_t musaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device, size_t bytes) {
  return api<"musaMemcpyPeer">(
      [&] { return copy_peer(dst, dst_device, src, src_device, bytes, nullptr, Host::Waits); });
}

musaError_t musaMemcpyPeerAsync(
    void* dst, int dst_device, const void* src, int src_device, size_t bytes, musaStream_t stream) {
  return api<"musaMemcpyPeerAsync">(
      [&] { return copy_peer(dst, dst_device, src, src_device, bytes, stream, Host::Continues); });
}

musaError_t musaMemcpy2D(
    void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, musaMemcpyKind kind) {
  return api<"musaMemcpy2D">(
      [&] { return copy_2d(dst, dpitch, src, spitch, width, height, kind, nullptr, Host::Waits); });
}

musaError_t musaMemcpy2DAsync(
    void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, musaMemcpyKind kind,
    musaStream_t stream) {
  return api<"musaMemcpy2DAsync">(
      [&] { return copy_2d(dst, dpitch, src, spitch, width, height, kind, stream, Host::Continues); });
}

musaError_t musaMemcpy3D(const musaMemcpy3DParms* parameters) {
  return api<"musaMemcpy3D">([&] { return copy_3d(parameters, nullptr, Host::Waits); });
}

musaError_t musaMemcpy3DAsync(const musaMemcpy3DParms* parameters, musaStream_t stream) {
  return api<"musaMemcpy3DAsync">([&] { return copy_3d(parameters, stream, Host::Continues); });
}

musaError_t musaMemset(void* pointer, int value, size_t bytes) {
  return api<"musaMemset">([&] { return fill(fill_bytes(pointer, value, bytes), nullptr, Host::Waits); });
}

musaError_t musaMemsetAsync(void* pointer, int value, size_t bytes, musaStream_t stream) {
  return api<"musaMemsetAsync">([&] { return fill(fill_bytes(pointer, value, bytes), stream, Host::Continues); });
}

musaError_t musaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return api<"musaMemset2D">(
      [&] { return fill(fill_bytes(pointer, value, width, height, pitch), nullptr, Host::Waits); });
}

musaError_t musaMemset2DAsync(
    void* pointer, size_t pitch, int value, size_t width, size_t height, musaStream_t stream) {
  return api<"musaMemset2DAsync">(
      [&] { return fill(fill_bytes(pointer, value, width, height, pitch), stream, Host::Continues); });
}

musaError_t musaMemset3D(musaPitchedPtr pitched, int value, musaExtent extent) {
  return api<"musaMemset3D">([&] { return fill(fill_slices(pitched, value, extent), nullptr, Host::Waits); });
}
