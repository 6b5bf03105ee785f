// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The runtime's torch_musa::_copy_on_device, which no list of torch's operators has: declared by hand in pack.cpp.
#pragma once

#include <ATen/core/Tensor.h>

namespace musa_ops_ported {

// Of one shape and device; converts, conjugates and negates as the tensors' dtypes and lazy bits ask.
void copy_on_device(const at::Tensor& self, const at::Tensor& src);
bool copy_on_device_served(const at::Tensor& self, const at::Tensor& src);

} // namespace musa_ops_ported
