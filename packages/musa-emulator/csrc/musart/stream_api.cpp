// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <utility>

#include "api_support.h"
#include "engine/capture.h"
#include "engine/event.h"

using namespace musa_emulator;

musaError_t musaStreamCreate(musaStream_t* stream) {
  return api<"musaStreamCreate">([&] {
    return stream != nullptr ? create_stream(*current_device(), musaStreamDefault, kLeastPriority, stream)
                             : musaErrorInvalidValue;
  });
}

musaError_t musaStreamCreateWithFlags(musaStream_t* stream, unsigned int flags) {
  return api<"musaStreamCreateWithFlags">([&] {
    return stream != nullptr ? create_stream(*current_device(), flags, kLeastPriority, stream) : musaErrorInvalidValue;
  });
}

musaError_t musaStreamCreateWithPriority(musaStream_t* stream, unsigned int flags, int priority) {
  return api<"musaStreamCreateWithPriority">([&] {
    return stream != nullptr ? create_stream(*current_device(), flags, priority, stream) : musaErrorInvalidValue;
  });
}

musaError_t musaStreamDestroy(musaStream_t stream) {
  return api<"musaStreamDestroy", kReleases>([&] { return destroy_stream(stream); });
}

musaError_t musaStreamSynchronize(musaStream_t stream) {
  return api<"musaStreamSynchronize", kUnsafeInCapture>([&] { return with_stream(stream, synchronize_stream); });
}

musaError_t musaStreamQuery(musaStream_t stream) {
  return api<"musaStreamQuery", kUnsafeInCapture>([&] { return with_stream(stream, query_stream); });
}

musaError_t musaStreamGetPriority(musaStream_t stream, int* priority) {
  return api<"musaStreamGetPriority">([&] {
    return with_stream(stream, [&](Stream& found) {
      if (priority == nullptr) {
        return musaErrorInvalidValue;
      }
      *priority = found.priority;
      return musaSuccess;
    });
  });
}

musaError_t musaStreamGetFlags(musaStream_t stream, unsigned int* flags) {
  return api<"musaStreamGetFlags">([&] {
    return with_stream(stream, [&](Stream& found) {
      if (flags == nullptr) {
        return musaErrorInvalidValue;
      }
      *flags = found.flags;
      return musaSuccess;
    });
  });
}

musaError_t musaStreamGetId(musaStream_t stream, unsigned long long* id) {
  return api<"musaStreamGetId">([&] {
    return with_stream(stream, [&](Stream& found) {
      if (id == nullptr) {
        return musaErrorInvalidValue;
      }
      *id = found.id;
      return musaSuccess;
    });
  });
}

musaError_t musaStreamWaitEvent(musaStream_t stream, musaEvent_t event, unsigned int flags) {
  return api<"musaStreamWaitEvent">([&] {
    return with_stream(stream, [&](Stream& found) {
      Event* resolved = resolve_event(event);
      return resolved != nullptr ? wait_event(found, *resolved, flags) : musaErrorInvalidResourceHandle;
    });
  });
}

musaError_t musaStreamAddCallback(musaStream_t stream, musaStreamCallback_t callback, void* data, unsigned int flags) {
  return api<"musaStreamAddCallback">([&] {
    return with_stream(stream, [&](Stream& found) {
      if (callback == nullptr || flags != 0) {
        return musaErrorInvalidValue;
      }
      return submit(found, CallbackOperation{stream, callback, data, found.device});
    });
  });
}

musaError_t musaLaunchHostFunc(musaStream_t stream, musaHostFn_t function, void* data) {
  return api<"musaLaunchHostFunc">([&] {
    return with_stream(stream, [&](Stream& found) {
      return function != nullptr ? submit(found, HostOperation{function, data}) : musaErrorInvalidValue;
    });
  });
}

// Accepted without effect: attributes configure hardware caches and host threads.
musaError_t musaStreamSetAttribute(musaStream_t stream, musaStreamAttrID attribute, const musaStreamAttrValue* value) {
  return api<"musaStreamSetAttribute">([&] {
    return with_stream(stream, [&](Stream&) {
      const bool known =
          attribute == musaStreamAttributeAccessPolicyWindow || attribute == musaStreamAttributeSynchronizationPolicy;
      return known && value != nullptr ? musaSuccess : musaErrorInvalidValue;
    });
  });
}

musaError_t musaStreamBeginCapture(musaStream_t stream, musaStreamCaptureMode mode) {
  return api<"musaStreamBeginCapture">(
      [&] { return with_stream(stream, [&](Stream& found) { return begin_capture(found, mode); }); });
}

// The C declarations; for C++ the header has templates with these names.
MUSA_EXTERN_C_BEGIN
MUSA_PUBLIC musaError_t musaThreadExchangeStreamCaptureMode(enum musaStreamCaptureMode* mode);
MUSA_PUBLIC musaError_t
musaStreamGetCaptureInfo(musaStream_t stream, musaStreamCaptureStatus* status, unsigned long long* id);
MUSA_EXTERN_C_END

musaError_t musaThreadExchangeStreamCaptureMode(enum musaStreamCaptureMode* mode) {
  return api<"musaThreadExchangeStreamCaptureMode", kSurvivesLoss>([&] {
    if (mode == nullptr || *mode < musaStreamCaptureModeGlobal || *mode > musaStreamCaptureModeRelaxed) {
      return musaErrorInvalidValue;
    }
    std::swap(thread_state().capture_mode, *mode);
    return musaSuccess;
  });
}

musaError_t musaStreamEndCapture(musaStream_t stream, musaGraph_t* graph) {
  return api<"musaStreamEndCapture">([&] {
    return with_stream(
        stream, [&](Stream& found) { return graph != nullptr ? end_capture(found, graph) : musaErrorInvalidValue; });
  });
}

musaError_t musaStreamIsCapturing(musaStream_t stream, musaStreamCaptureStatus* status) {
  return api<"musaStreamIsCapturing">([&] {
    return with_stream(stream, [&](Stream& found) {
      if (status == nullptr) {
        return musaErrorInvalidValue;
      }
      if (engine().active_captures.load(std::memory_order_acquire) == 0) {
        *status = musaStreamCaptureStatusNone;
        return musaSuccess;
      }
      return capture_info(found, status, nullptr, nullptr, nullptr, nullptr);
    });
  });
}

musaError_t musaStreamGetCaptureInfo_v2(
    musaStream_t stream, musaStreamCaptureStatus* status, unsigned long long* id, musaGraph_t* graph,
    const musaGraphNode_t** dependencies, size_t* count) {
  return api<"musaStreamGetCaptureInfo_v2">([&] {
    return with_stream(stream, [&](Stream& found) {
      return status != nullptr ? capture_info(found, status, id, graph, dependencies, count) : musaErrorInvalidValue;
    });
  });
}

musaError_t musaStreamGetCaptureInfo(musaStream_t stream, musaStreamCaptureStatus* status, unsigned long long* id) {
  return api<"musaStreamGetCaptureInfo">([&] {
    return with_stream(stream, [&](Stream& found) {
      return status != nullptr ? capture_info(found, status, id, nullptr, nullptr, nullptr) : musaErrorInvalidValue;
    });
  });
}
