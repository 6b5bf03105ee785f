// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/transfer.h"

#include <cstring>

#include "engine/activity.h"
#include "engine/execution.h"
#include "engine/memory.h"
#include "engine/stream.h"

namespace musa_emulator {
namespace {

// Up to this size, a queued copy from pageable memory uses a staging buffer; for larger copies the caller waits.
constexpr size_t kStagingBytes = size_t{64} << 20;

bool pageable(const void* pointer) { return classify(pointer).type == musaMemoryTypeUnregistered; }

musaError_t submit_and_wait(Stream& stream, Operation operation) {
  if (const musaError_t status = may_wait(); status != musaSuccess) {
    return status;
  }
  if (const musaError_t status = submit(stream, std::move(operation)); status != musaSuccess) {
    return status;
  }
  if (stream.idle()) {
    return stream.device->lost.load(std::memory_order_acquire);
  }
  Lock lock(engine().mutex);
  return wait_for({&stream, stream.submitted.load()}, lock);
}

// Replaces the source by a packed copy, so that the caller may overwrite its buffer.
void stage(CopyOperation& copy) {
  CopyOperation packed = copy;
  packed.staging.reset(new char[copy.bytes()], std::default_delete<char[]>());
  packed.dst = packed.staging.get();
  packed.dst_pitch = copy.width;
  packed.dst_slice = copy.width * copy.height;
  copy_box(packed);
  copy.src = packed.dst;
  copy.src_pitch = packed.dst_pitch;
  copy.src_slice = packed.dst_slice;
  copy.staging = std::move(packed.staging);
}

void copy_now(const Stream& stream, const CopyOperation& copy) {
  const int64_t start = tracing() ? activity_clock() : 0;
  copy_box(copy);
  if (start != 0) [[unlikely]] {
    note_copy(stream, copy, current_correlation(), start);
  }
}

void fill_now(const Stream& stream, const FillOperation& fill) {
  const int64_t start = tracing() ? activity_clock() : 0;
  fill_box(fill);
  if (start != 0) [[unlikely]] {
    note_fill(stream, fill, current_correlation(), start);
  }
}

} // namespace

CopyOperation linear_copy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  CopyOperation copy{};
  copy.dst = static_cast<char*>(dst);
  copy.src = static_cast<const char*>(src);
  copy.width = bytes;
  copy.kind = kind;
  return copy;
}

// The source or destination of a box copy: its first byte, row pitch and slice pitch.
static musaError_t box_side(
    const musaPitchedPtr& memory, const musaPos& at, const musaExtent& size, char** data, size_t* pitch,
    size_t* slice) {
  *pitch = memory.pitch;
  *slice = checked_product(memory.pitch, memory.ysize);
  const size_t offset = checked_sum(checked_sum(checked_product(at.z, *slice), checked_product(at.y, *pitch)), at.x);
  if (offset > kAddressLimit) {
    return musaErrorInvalidValue;
  }
  *data = static_cast<char*>(memory.ptr) + offset;
  const bool rows = size.height > 1 || size.depth > 1;
  return rows && checked_sum(at.x, size.width) > *pitch ? musaErrorInvalidPitchValue : musaSuccess;
}

musaError_t box_copy(const musaMemcpy3DParms& parameters, CopyOperation* copy) {
  if (parameters.srcArray != nullptr || parameters.dstArray != nullptr) {
    return musaErrorNotSupported;
  }
  const musaExtent& size = parameters.extent;
  char* from = nullptr;
  musaError_t status = box_side(parameters.srcPtr, parameters.srcPos, size, &from, &copy->src_pitch, &copy->src_slice);
  if (status == musaSuccess) {
    status = box_side(parameters.dstPtr, parameters.dstPos, size, &copy->dst, &copy->dst_pitch, &copy->dst_slice);
  }
  copy->src = from;
  copy->width = size.width;
  copy->height = size.height;
  copy->depth = size.depth;
  copy->kind = parameters.kind;
  return status;
}

musaError_t check_copy(const CopyOperation& copy) {
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) {
    return musaSuccess;
  }
  if (copy.height > 1 && (copy.width > copy.dst_pitch || copy.width > copy.src_pitch)) {
    return musaErrorInvalidPitchValue;
  }
  if (copy.depth > 1 &&
      (box_span(1, 0, copy.height, copy.dst_pitch, copy.width) > copy.dst_slice ||
       box_span(1, 0, copy.height, copy.src_pitch, copy.width) > copy.src_slice)) {
    return musaErrorInvalidValue; // slices overlap
  }
  return check_transfer(copy.dst, copy.dst_span(), copy.src, copy.src_span(), copy.kind);
}

musaError_t submit_copy(Stream& stream, CopyOperation&& copy, Host host) {
  if (const musaError_t status = check_copy(copy); status != musaSuccess) {
    return status;
  }
  const size_t bytes = copy.bytes();
  if (bytes == 0) {
    return musaSuccess;
  }
  if (bytes <= kBriefBytes && may_run(copy) && run_now(stream, [&] { copy_now(stream, copy); })) {
    return musaSuccess;
  }
  if (stream.capture.load(std::memory_order_relaxed) != nullptr) {
    return submit(stream, std::move(copy));
  }
  if (host == Host::Waits) {
    // Copies between device buffers do not make the host wait, even in the synchronous functions.
    const bool on_device =
        classify(copy.dst).type == musaMemoryTypeDevice && classify(copy.src).type == musaMemoryTypeDevice;
    return on_device ? submit(stream, std::move(copy)) : submit_and_wait(stream, std::move(copy));
  }
  if (pageable(copy.dst)) {
    return submit_and_wait(stream, std::move(copy));
  }
  if (pageable(copy.src)) {
    if (engine().config.mode == Mode::Inline || bytes > kStagingBytes) {
      return submit_and_wait(stream, std::move(copy));
    }
    stage(copy);
  }
  return submit(stream, std::move(copy));
}

musaError_t check_fill(const FillOperation& fill) {
  if (fill.width == 0 || fill.height == 0 || fill.depth == 0) {
    return musaSuccess;
  }
  if (fill.element != 1 && fill.element != 2 && fill.element != 4) {
    return musaErrorInvalidValue;
  }
  if (fill.height > 1 && fill.row() > fill.pitch) {
    return musaErrorInvalidPitchValue;
  }
  if (fill.depth > 1 && box_span(1, 0, fill.height, fill.pitch, fill.row()) > fill.slice) {
    return musaErrorInvalidValue; // slices overlap
  }
  return check_fill(fill.dst, fill.span());
}

musaError_t submit_fill(Stream& stream, const FillOperation& fill, Host host) {
  if (const musaError_t status = check_fill(fill); status != musaSuccess) {
    return status;
  }
  if (fill.width == 0 || fill.height == 0 || fill.depth == 0) {
    return musaSuccess;
  }
  if (fill.bytes() <= kBriefBytes && may_run(fill) && run_now(stream, [&] { fill_now(stream, fill); })) {
    return musaSuccess;
  }
  // As on hardware, the host waits for a fill of host memory, but not for a fill of device memory.
  if (host == Host::Waits && classify(fill.dst).type != musaMemoryTypeDevice) {
    return submit_and_wait(stream, fill);
  }
  return submit(stream, fill);
}

} // namespace musa_emulator
