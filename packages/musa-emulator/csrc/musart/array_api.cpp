// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arrays, and copies between arrays and memory.
#include "engine/array.h"

#include "api_support.h"
#include "engine/memory.h"
#include "engine/stream.h"
#include "engine/transfer.h"

using namespace musa_emulator;

namespace {

musaError_t allocate(musaArray_t* array, const musaChannelFormatDesc* desc, musaExtent extent, unsigned flags) {
  if (array == nullptr || desc == nullptr) {
    return musaErrorInvalidValue;
  }
  return allocate_array(current_device()->ordinal, *desc, extent, flags, array);
}

// A rectangle of an array's first slice that starts at byte `x` of row `y`.
struct Rectangle {
  musaArray_const_t array;
  size_t x, y;
};

// Computes the address of the rectangle and the pitch of its rows. Fails if the rectangle is outside the array.
musaError_t locate(const Rectangle& place, size_t width, size_t height, char** data, size_t* pitch) {
  const Array* array = find_array(place.array);
  if (array == nullptr) {
    return musaErrorInvalidResourceHandle;
  }
  if (place.x > array->pitch || width > array->pitch - place.x || place.y > array->rows || height > array->rows - place.y) {
    return musaErrorInvalidValue;
  }
  *data = array->data + place.y * array->pitch + place.x;
  *pitch = array->pitch;
  return musaSuccess;
}

// Pitched linear memory, or a rectangle of an array if `memory` is null.
struct Side {
  void* memory;
  size_t pitch;
  Rectangle rectangle;
};

musaError_t copy_rows(
    const Side& dst, const Side& src, size_t width, size_t height, musaMemcpyKind kind, musaStream_t stream, Host host) {
  return with_stream(stream, [&](Stream& found) {
    char *to = static_cast<char*>(dst.memory), *from = static_cast<char*>(src.memory);
    size_t to_pitch = dst.pitch, from_pitch = src.pitch;
    musaError_t status = musaSuccess;
    if (to == nullptr) {
      status = locate(dst.rectangle, width, height, &to, &to_pitch);
    }
    if (status == musaSuccess && from == nullptr) {
      status = locate(src.rectangle, width, height, &from, &from_pitch);
    }
    if (status != musaSuccess) {
      return status;
    }
    if (height > 1 && (width > to_pitch || width > from_pitch)) {
      return musaErrorInvalidPitchValue;
    }
    CopyOperation copy = linear_copy(to, from, width, kind);
    copy.height = height;
    copy.dst_pitch = to_pitch;
    copy.src_pitch = from_pitch;
    return submit_copy(found, std::move(copy), host);
  });
}

// Copies `bytes` that may span several rows of an array. The rows of emulated arrays are contiguous.
musaError_t copy_piece(
    musaArray_const_t array, size_t x, size_t y, const void* memory, size_t bytes, bool into, musaMemcpyKind kind) {
  return with_stream(nullptr, [&](Stream& found) {
    const Array* named = find_array(array);
    if (named == nullptr || memory == nullptr) {
      return named == nullptr ? musaErrorInvalidResourceHandle : musaErrorInvalidValue;
    }
    const size_t offset = y * named->pitch + x;
    if (x >= named->pitch || y >= named->rows || bytes > named->slice() - offset) {
      return musaErrorInvalidValue;
    }
    char* place = named->data + offset;
    return submit_copy(
        found,
        into ? linear_copy(place, memory, bytes, kind) : linear_copy(const_cast<void*>(memory), place, bytes, kind),
        Host::Waits);
  });
}

} // namespace

musaError_t musaMallocArray(
    musaArray_t* array, const musaChannelFormatDesc* desc, size_t width, size_t height, unsigned int flags) {
  return api<"musaMallocArray", kUnsafeInCapture>([&] { return allocate(array, desc, {width, height, 0}, flags); });
}

musaError_t musaMalloc3DArray(
    musaArray_t* array, const musaChannelFormatDesc* desc, musaExtent extent, unsigned int flags) {
  return api<"musaMalloc3DArray", kUnsafeInCapture>([&] { return allocate(array, desc, extent, flags); });
}

musaError_t musaFreeArray(musaArray_t array) {
  return api<"musaFreeArray", kReleases | kUnsafeInCapture>([&] {
    if (array == nullptr) {
      return musaSuccess;
    }
    if (const Array* found = find_array(array)) {
      if (Device* device = find_device(classify(found->data).device)) {
        drain(*device);
      }
    }
    return free_array(array);
  });
}

musaError_t musaArrayGetInfo(
    musaChannelFormatDesc* desc, musaExtent* extent, unsigned int* flags, musaArray_t array) {
  return api<"musaArrayGetInfo">([&] {
    const Array* found = find_array(array);
    if (found == nullptr) {
      return musaErrorInvalidResourceHandle;
    }
    if (desc != nullptr) {
      *desc = found->desc;
    }
    if (extent != nullptr) {
      *extent = found->extent;
    }
    if (flags != nullptr) {
      *flags = found->flags;
    }
    return musaSuccess;
  });
}

musaError_t musaGetChannelDesc(musaChannelFormatDesc* desc, musaArray_const_t array) {
  return api<"musaGetChannelDesc">([&] {
    const Array* found = find_array(array);
    if (found == nullptr || desc == nullptr) {
      return found == nullptr ? musaErrorInvalidResourceHandle : musaErrorInvalidValue;
    }
    *desc = found->desc;
    return musaSuccess;
  });
}

musaError_t musaMemcpyToArray(
    musaArray_t dst, size_t x, size_t y, const void* src, size_t bytes, musaMemcpyKind kind) {
  return api<"musaMemcpyToArray">([&] { return copy_piece(dst, x, y, src, bytes, /*into=*/true, kind); });
}

musaError_t musaMemcpyFromArray(
    void* dst, musaArray_const_t src, size_t x, size_t y, size_t bytes, musaMemcpyKind kind) {
  return api<"musaMemcpyFromArray">([&] { return copy_piece(src, x, y, dst, bytes, /*into=*/false, kind); });
}

musaError_t musaMemcpy2DToArray(
    musaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width, size_t height,
    musaMemcpyKind kind) {
  return api<"musaMemcpy2DToArray">([&] {
    return copy_rows(
        {nullptr, 0, {dst, x, y}}, {const_cast<void*>(src), pitch, {}}, width, height, kind, nullptr, Host::Waits);
  });
}

musaError_t musaMemcpy2DToArrayAsync(
    musaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width, size_t height,
    musaMemcpyKind kind, musaStream_t stream) {
  return api<"musaMemcpy2DToArrayAsync">([&] {
    return copy_rows(
        {nullptr, 0, {dst, x, y}}, {const_cast<void*>(src), pitch, {}}, width, height, kind, stream, Host::Continues);
  });
}

musaError_t musaMemcpy2DFromArray(
    void* dst, size_t pitch, musaArray_const_t src, size_t x, size_t y, size_t width, size_t height,
    musaMemcpyKind kind) {
  return api<"musaMemcpy2DFromArray">([&] {
    return copy_rows({dst, pitch, {}}, {nullptr, 0, {src, x, y}}, width, height, kind, nullptr, Host::Waits);
  });
}

musaError_t musaMemcpy2DFromArrayAsync(
    void* dst, size_t pitch, musaArray_const_t src, size_t x, size_t y, size_t width, size_t height,
    musaMemcpyKind kind, musaStream_t stream) {
  return api<"musaMemcpy2DFromArrayAsync">([&] {
    return copy_rows({dst, pitch, {}}, {nullptr, 0, {src, x, y}}, width, height, kind, stream, Host::Continues);
  });
}

musaError_t musaMemcpy2DArrayToArray(
    musaArray_t dst, size_t dst_x, size_t dst_y, musaArray_const_t src, size_t src_x, size_t src_y, size_t width,
    size_t height, musaMemcpyKind kind) {
  return api<"musaMemcpy2DArrayToArray">([&] {
    return copy_rows(
        {nullptr, 0, {dst, dst_x, dst_y}}, {nullptr, 0, {src, src_x, src_y}}, width, height, kind, nullptr, Host::Waits);
  });
}
