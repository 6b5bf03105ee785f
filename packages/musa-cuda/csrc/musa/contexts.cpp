// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Contexts: cuCtxCreate of CUDA 13 takes parameters that the SDK does not have.
#include "musa/support.h"

namespace musa_cuda::by_hand {

MUresult muCtxCreate(MUcontext* context, unsigned int flags, MUdevice device) {
  auto* const create = MUSA_CUDA_DRIVER(cuCtxCreate);
  return create == nullptr
      ? without_driver()
      : static_cast<MUresult>(create((CUcontext*)context, nullptr, flags, static_cast<CUdevice>(device)));
}

} // namespace musa_cuda::by_hand
