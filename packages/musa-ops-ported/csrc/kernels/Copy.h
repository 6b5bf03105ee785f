// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernel of the runtime's torch_musa::_copy_on_device, which is not an operator of torch; pack.cpp declares it by
// hand.
#pragma once

#include <ATen/core/Tensor.h>

namespace musa_ops_ported {

// Copies between tensors of the same shape and device. Converts dtypes and applies lazy conjugation and negation.
void copy_on_device(const at::Tensor& self, const at::Tensor& src);
bool copy_on_device_served(const at::Tensor& self, const at::Tensor& src);

} // namespace musa_ops_ported
