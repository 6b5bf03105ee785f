// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// alias() for tasks that keep no reference to their tensors: it saves a reference count, which is two atomic
// operations.
#pragma once

#include "support/alias.h"

namespace musa_emulator::dnn {

// Like alias(). The thread's stock owns the tensor, which is valid until the end of the task.
at::Tensor& lent_alias(const Tensor& tensor);

} // namespace musa_emulator::dnn
