// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <musa_runtime_api.h>

#include "support/forward.h"
#include "support/hooks.h"

namespace musa_cuda {

inline musaError_t status(cudaError_t error) { return static_cast<musaError_t>(error); }

} // namespace musa_cuda
