// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "mublas/support.h"

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

template <class T>
mublasStatus_t get(mublasHandle_t handle, T mublasContext::* member, T* value) {
  if (!alive(handle)) {
    return MUBLAS_STATUS_INVALID_HANDLE;
  }
  if (value == nullptr) {
    return MUBLAS_STATUS_INVALID_POINTER;
  }
  *value = handle->*member;
  return MUBLAS_STATUS_SUCCESS;
}

template <class T>
mublasStatus_t set(mublasHandle_t handle, T mublasContext::* member, T value, bool known = true) {
  if (!alive(handle)) {
    return MUBLAS_STATUS_INVALID_HANDLE;
  }
  if (!known) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  handle->*member = value;
  return MUBLAS_STATUS_SUCCESS;
}

} // namespace

mublasStatus_t mublasCreate(mublasHandle_t* handle) {
  const musaError_t error = api<"mublasCreate">([&] {
    if (handle == nullptr) {
      return musaErrorInvalidValue;
    }
    int device;
    const musaError_t status = musaGetDevice(&device); // fails without a device
    if (status == musaSuccess) {
      *handle = new mublasContext;
    }
    return status;
  });
  return error == musaErrorInvalidValue && handle == nullptr ? MUBLAS_STATUS_INVALID_POINTER : status_of(error);
}

mublasStatus_t mublasDestroy(mublasHandle_t handle) {
  if (!alive(handle)) {
    return MUBLAS_STATUS_INVALID_HANDLE;
  }
  const musaError_t error = api<"mublasDestroy", kReleases>([&] {
    handle->magic = 0;
    delete handle;
    return musaSuccess;
  });
  return status_of(error);
}

mublasStatus_t mublasGetVersion(mublasHandle_t handle, int* version) {
  if (!alive(handle)) {
    return MUBLAS_STATUS_INVALID_HANDLE;
  }
  if (version == nullptr) {
    return MUBLAS_STATUS_INVALID_POINTER;
  }
  *version = MUBLAS_VERSION;
  return MUBLAS_STATUS_SUCCESS;
}

mublasStatus_t mublasSetStream(mublasHandle_t handle, musaStream_t stream) {
  return set(handle, &mublasContext::stream, stream);
}
mublasStatus_t mublasGetStream(mublasHandle_t handle, musaStream_t* stream) {
  return get(handle, &mublasContext::stream, stream);
}
mublasStatus_t mublasSetPointerMode(mublasHandle_t handle, mublasPointerMode_t mode) {
  return set(
      handle, &mublasContext::pointer_mode, mode,
      mode == MUBLAS_POINTER_MODE_HOST || mode == MUBLAS_POINTER_MODE_DEVICE);
}
mublasStatus_t mublasGetPointerMode(mublasHandle_t handle, mublasPointerMode_t* mode) {
  return get(handle, &mublasContext::pointer_mode, mode);
}
mublasStatus_t mublasSetMathMode(mublasHandle_t handle, mublasMath_t mode) {
  return set(handle, &mublasContext::math_mode, mode, mode == MUBLAS_DEFAULT_MATH || mode == MUBLAS_TENSOR_OP_MATH);
}
mublasStatus_t mublasGetMathMode(mublasHandle_t handle, mublasMath_t* mode) {
  return get(handle, &mublasContext::math_mode, mode);
}
mublasStatus_t mublasSetAtomicsMode(mublasHandle_t handle, mublasAtomicsMode_t mode) {
  return set(
      handle, &mublasContext::atomics_mode, mode, mode == MUBLAS_ATOMICS_NOT_ALLOWED || mode == MUBLAS_ATOMICS_ALLOWED);
}
mublasStatus_t mublasGetAtomicsMode(mublasHandle_t handle, mublasAtomicsMode_t* mode) {
  return get(handle, &mublasContext::atomics_mode, mode);
}
// The workspace is not used.
mublasStatus_t mublasSetWorkspace(mublasHandle_t handle, void* workspace, size_t bytes) {
  if (!alive(handle)) {
    return MUBLAS_STATUS_INVALID_HANDLE;
  }
  return workspace == nullptr && bytes != 0 ? MUBLAS_STATUS_INVALID_POINTER : MUBLAS_STATUS_SUCCESS;
}

const char* mublasGetStatusString(mublasStatus_t status) {
  switch (status) {
    case MUBLAS_STATUS_SUCCESS: return "MUBLAS_STATUS_SUCCESS";
    case MUBLAS_STATUS_INVALID_HANDLE: return "MUBLAS_STATUS_INVALID_HANDLE";
    case MUBLAS_STATUS_NOT_IMPLEMENTED: return "MUBLAS_STATUS_NOT_IMPLEMENTED";
    case MUBLAS_STATUS_INVALID_POINTER: return "MUBLAS_STATUS_INVALID_POINTER";
    case MUBLAS_STATUS_INVALID_SIZE: return "MUBLAS_STATUS_INVALID_SIZE";
    case MUBLAS_STATUS_MEMORY_ERROR: return "MUBLAS_STATUS_MEMORY_ERROR";
    case MUBLAS_STATUS_INTERNAL_ERROR: return "MUBLAS_STATUS_INTERNAL_ERROR";
    case MUBLAS_STATUS_PERF_DEGRADED: return "MUBLAS_STATUS_PERF_DEGRADED";
    case MUBLAS_STATUS_SIZE_QUERY_MISMATCH: return "MUBLAS_STATUS_SIZE_QUERY_MISMATCH";
    case MUBLAS_STATUS_SIZE_INCREASED: return "MUBLAS_STATUS_SIZE_INCREASED";
    case MUBLAS_STATUS_SIZE_UNCHANGED: return "MUBLAS_STATUS_SIZE_UNCHANGED";
    case MUBLAS_STATUS_INVALID_VALUE: return "MUBLAS_STATUS_INVALID_VALUE";
    case MUBLAS_STATUS_CONTINUE: return "MUBLAS_STATUS_CONTINUE";
    case MUBLAS_STATUS_CHECK_NUMERICS_FAIL: return "MUBLAS_STATUS_CHECK_NUMERICS_FAIL";
  }
  return "unknown muBLAS status";
}
const char* mublasStatus_to_string(mublasStatus_t status) { return mublasGetStatusString(status); }
