// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// alias() for tasks that keep none of their tensors: without a reference count of its own, which is two atomic operations.
#pragma once

#include "support/alias.h"

namespace musa_emulator::dnn {

// As alias(). The tensor is the thread's stock's, and ends with the task.
at::Tensor& lent_alias(const Tensor& tensor);

} // namespace musa_emulator::dnn
