// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <fft/plan.h>

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/util/ArrayRef.h>
#include <mufft.h>
#include <mufftXt.h>

namespace musa_ops_math::fft {
namespace {

using c10::ScalarType;

const char* name_of(mufftResult result) {
  switch (result) {
    case MUFFT_SUCCESS: return "MUFFT_SUCCESS";
    case MUFFT_INVALID_PLAN: return "MUFFT_INVALID_PLAN";
    case MUFFT_ALLOC_FAILED: return "MUFFT_ALLOC_FAILED";
    case MUFFT_INVALID_TYPE: return "MUFFT_INVALID_TYPE";
    case MUFFT_INVALID_VALUE: return "MUFFT_INVALID_VALUE";
    case MUFFT_INTERNAL_ERROR: return "MUFFT_INTERNAL_ERROR";
    case MUFFT_EXEC_FAILED: return "MUFFT_EXEC_FAILED";
    case MUFFT_SETUP_FAILED: return "MUFFT_SETUP_FAILED";
    case MUFFT_INVALID_SIZE: return "MUFFT_INVALID_SIZE";
    case MUFFT_UNALIGNED_DATA: return "MUFFT_UNALIGNED_DATA";
    case MUFFT_INVALID_DEVICE: return "MUFFT_INVALID_DEVICE";
    case MUFFT_NO_WORKSPACE: return "MUFFT_NO_WORKSPACE";
    case MUFFT_NOT_IMPLEMENTED: return "MUFFT_NOT_IMPLEMENTED";
    case MUFFT_NOT_SUPPORTED: return "MUFFT_NOT_SUPPORTED";
    default: return "an unknown result";
  }
}

const char* meaning_of(mufftResult result) {
  switch (result) {
    case MUFFT_ALLOC_FAILED:
      return "Likely cause: the device is out of memory. Free tensors, or use smaller batches; "
             "torch.musa.memory_summary() says what is in use.";
    case MUFFT_EXEC_FAILED:
      return "Likely causes: the current stream belongs to a graph capture that has failed; an earlier kernel failed and "
             "the device is lost. Run again with MUSA_LAUNCH_BLOCKING=1 to see which, and restart the process.";
    case MUFFT_SETUP_FAILED:
    case MUFFT_INTERNAL_ERROR:
      return "Likely cause: the driver or the device is not available. `python -m torch_musa doctor` says more.";
    default:
      return "Likely cause: this muFFT does not compute transforms of these sizes or dtypes. "
             "TORCH_MUSA_OPS=<operator>=host-copy computes them on the host.";
  }
}

[[noreturn, gnu::cold]] void raise(mufftResult result, const char* call, const std::string& subject) {
  // This error reports the failure within muFFT, so the next kernel launch must not report it again.
  C10_MUSA_CLEAR_ERROR();
  const std::string text =
      c10::str("muFFT answered ", name_of(result), " to ", call, "(", subject, ").\n", meaning_of(result));
  TORCH_CHECK_WITH(OutOfMemoryError, result != MUFFT_ALLOC_FAILED, text);
  TORCH_CHECK(false, text);
}

void check(mufftResult result, const char* call) {
  if (result != MUFFT_SUCCESS) [[unlikely]] {
    raise(result, call, "");
  }
}

std::string describe(const PlanKey& key) {
  return c10::str(
      key.in_type, " to ", key.out_type, ", sizes ", c10::ArrayRef<int64_t>(key.sizes.data(), key.rank), ", batch ",
      key.batch);
}

musaDataType type_of(ScalarType type) {
  switch (type) {
    case ScalarType::Float: return MUSA_R_32F;
    case ScalarType::Double: return MUSA_R_64F;
    case ScalarType::ComplexFloat: return MUSA_C_32F;
    case ScalarType::ComplexDouble: return MUSA_C_64F;
    default: TORCH_CHECK(false, "muFFT has no transform of ", type, ".");
  }
}

using Sizes = std::array<long long, kMostDims>;

Sizes long_longs(const std::array<int64_t, kMostDims>& sizes) { return {sizes[0], sizes[1], sizes[2]}; }

mufftResult make(mufftHandle handle, const PlanKey& key, size_t* bytes) {
  Sizes sizes = long_longs(key.sizes), in = long_longs(key.in.embed), out = long_longs(key.out.embed);
  const musaDataType in_type = type_of(key.in_type), out_type = type_of(key.out_type);
  const bool is_double = key.in_type == ScalarType::Double || key.in_type == ScalarType::ComplexDouble;
  return mufftXtMakePlanMany(
      handle, static_cast<int>(key.rank), sizes.data(), in.data(), key.in.stride, key.in.distance, in_type, out.data(),
      key.out.stride, key.out.distance, out_type, key.batch, bytes, is_double ? MUSA_C_64F : MUSA_C_32F);
}

} // namespace

Plan::Plan(const PlanKey& key) {
  // muFFT may allocate and wait, which a capture on any thread forbids by default.
  const c10::musa::MUSAStreamCaptureModeGuard relaxed;
  for (const bool again : {false, true}) {
    check(mufftCreate(&handle_), "mufftCreate");
    mufftResult result = mufftSetAutoAllocation(handle_, 0);
    if (result == MUFFT_SUCCESS) {
      result = make(handle_, key, &workspace_bytes_);
    }
    if (result == MUFFT_SUCCESS) {
      return;
    }
    static_cast<void>(mufftDestroy(handle_));
    if (result != MUFFT_ALLOC_FAILED || again) {
      raise(result, "mufftXtMakePlanMany", describe(key));
    }
    C10_MUSA_CLEAR_ERROR(); // of the failed allocation, which the next kernel launch must not report
    c10::musa::MUSACachingAllocator::emptyCache(); // frees memory for muFFT's tables
  }
}

Plan::~Plan() {
  const c10::musa::MUSAStreamCaptureModeGuard relaxed;
  static_cast<void>(mufftDestroy(handle_));
}

void Plan::run(void* in, void* out, bool forward, void* workspace, musaStream_t stream) {
  check(mufftSetStream(handle_, stream), "mufftSetStream");
  check(mufftSetWorkArea(handle_, workspace), "mufftSetWorkArea");
  check(mufftXtExec(handle_, in, out, forward ? MUFFT_FORWARD : MUFFT_INVERSE), "mufftXtExec");
}

} // namespace musa_ops_math::fft
