// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/event.h"

#include "api_support.h"

using namespace musa_emulator;

namespace {

template <class Body>
musaError_t with_event(musaEvent_t handle, Body&& body) {
  Event* event = resolve_event(handle);
  return event != nullptr ? body(*event) : musaErrorInvalidResourceHandle;
}

} // namespace

musaError_t musaEventCreate(musaEvent_t* event) {
  return api<"musaEventCreate">([&] {
    return event != nullptr ? create_event(*current_device(), musaEventDefault, event) : musaErrorInvalidValue;
  });
}

musaError_t musaEventCreateWithFlags(musaEvent_t* event, unsigned int flags) {
  return api<"musaEventCreateWithFlags">(
      [&] { return event != nullptr ? create_event(*current_device(), flags, event) : musaErrorInvalidValue; });
}

musaError_t musaEventRecord(musaEvent_t event, musaStream_t stream) {
  return api<"musaEventRecord">([&] {
    return with_event(event, [&](Event& found) {
      return with_stream(stream, [&](Stream& target) { return record_event(found, target, musaEventRecordDefault); });
    });
  });
}

musaError_t musaEventRecordWithFlags(musaEvent_t event, musaStream_t stream, unsigned int flags) {
  return api<"musaEventRecordWithFlags">([&] {
    return with_event(event, [&](Event& found) {
      return with_stream(stream, [&](Stream& target) { return record_event(found, target, flags); });
    });
  });
}

musaError_t musaEventQuery(musaEvent_t event) {
  return api<"musaEventQuery", kUnsafeInCapture>([&] { return with_event(event, query_event); });
}

musaError_t musaEventSynchronize(musaEvent_t event) {
  return api<"musaEventSynchronize", kUnsafeInCapture>([&] { return with_event(event, synchronize_event); });
}

musaError_t musaEventElapsedTime(float* milliseconds, musaEvent_t start, musaEvent_t end) {
  return api<"musaEventElapsedTime">([&] {
    return with_event(start, [&](Event& first) {
      return with_event(end, [&](Event& last) {
        return milliseconds != nullptr ? elapsed_time(first, last, milliseconds) : musaErrorInvalidValue;
      });
    });
  });
}

musaError_t musaEventDestroy(musaEvent_t event) {
  return api<"musaEventDestroy", kReleases>(
      [&] { return with_event(event, [](Event& found) { return destroy_event(&found); }); });
}
