// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAException.h>

#include <string>

namespace c10::musa {
namespace {

// The causes and the fix for common error codes; empty if the SDK's own text is sufficient.
const char* advice(musaError_t error) {
  switch (error) {
    case musaErrorInitializationError:
      return "\nLikely causes: this process was forked after it had used the musa device, or the driver could not start."
             "\nFix: start workers with the 'spawn' method (torch.multiprocessing.set_start_method('spawn'), "
             "DataLoader(multiprocessing_context='spawn')); if nothing was forked, run: python -m torch_musa doctor";
    case musaErrorNoDevice:
    case musaErrorInsufficientDriver:
      return "\nLikely causes: MUSA_VISIBLE_DEVICES hides every device, or the driver is missing or too old."
             "\nFix: python -m torch_musa doctor";
    case musaErrorInvalidDevice:
      return "\nLikely causes: the index is not below torch.musa.device_count(), or MUSA_VISIBLE_DEVICES hides the device.";
    case musaErrorMemoryAllocation:
      return "\nFix: free tensors, lower the batch size, or return cached memory with torch.musa.empty_cache().";
    case musaErrorIllegalAddress:
    case musaErrorLaunchFailure:
      return "\nThe fault may have happened in an earlier asynchronous call. Fix: run again with MUSA_LAUNCH_BLOCKING=1 "
             "to find the call; the device cannot be used any more in this process.";
    case musaErrorStreamCaptureUnsupported:
    case musaErrorStreamCaptureInvalidated:
    case musaErrorStreamCaptureImplicit:
      return "\nLikely causes, in order: the current stream is being captured into a graph and this operation must wait for "
             "the device, which a graph cannot record; another thread captures a graph at the same time, and this operation "
             "affects the whole device, as the start of torch.musa.graph does."
             "\nFix: move the operation out of the capture; capture one graph after the other, and use "
             "capture_error_mode='thread_local' beside threads that wait for the device.";
    case musaErrorStreamCaptureUnjoined:
      return "\nWork that a side stream does in the graph does not lead back to the stream that is captured. Fix: before "
             "the capture ends, let that stream wait: capture_stream.wait_stream(side_stream).";
    case musaErrorStreamCaptureIsolation:
      return "\nA graph cannot wait for work outside of it. Fix: let the side stream wait for the capturing stream, "
             "inside the capture, before it is used; wait for events of earlier work before the capture begins.";
    default: return "";
  }
}

std::string describe(musaError_t error, const char* call) {
  return c10::str(
      "MUSA error ", static_cast<int>(error), " (", musaGetErrorName(error), "): ", musaGetErrorString(error),
      "\nThe call that failed: ", call, advice(error));
}

} // namespace

void throw_musa_error(musaError_t error, const char* call, const char* function, const char* file, uint32_t line) {
  // Otherwise the stale code would be returned by the next unrelated musaGetLastError().
  (void)musaGetLastError();
  throw c10::AcceleratorError({function, file, line}, static_cast<int32_t>(error), describe(error, call));
}

void warn_musa_error(musaError_t error, const char* call) {
  (void)musaGetLastError();
  TORCH_WARN(describe(error, call));
}

} // namespace c10::musa
