// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Callback ids: CUPTI numbers the calls of CUDA, and has several numbers for one function of the SDK (versions, streams per
// thread).
#pragma once

#include <vector>

#include "mupti/support.h"

namespace musa_cuda {

struct Call {
  MUpti_CallbackId id = 0; // 0 (INVALID) for a call of CUDA alone that puts work on a device
  const char* name = nullptr; // nullptr where `id` is 0
};

// Returns nullptr for a call of CUDA alone that puts no work on a device: it has no record.
const Call* find_call(MUpti_CallbackDomain domain, CUpti_CallbackId id);

// Returns CUPTI's numbers of a call of the SDK; none if it is no number of the domain.
std::vector<CUpti_CallbackId> numbers_of(MUpti_CallbackDomain domain, MUpti_CallbackId id);

} // namespace musa_cuda
