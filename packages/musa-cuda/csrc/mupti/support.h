// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cupti.h>
#include <mupti.h>

#include "support/forward.h"
#include "support/hooks.h"

namespace musa_cuda {

// The SDK's error code. A code of CUPTI alone becomes MUPTI_ERROR_UNKNOWN, and its name is printed once.
MUptiResult status(CUptiResult result);

template <class Result, class... Parameters, class... Arguments>
inline Result forward_to_cupti(CUptiResult (*function)(Parameters...), Arguments... arguments) {
  return status(forward<CUptiResult>(function, arguments...));
}

} // namespace musa_cuda
