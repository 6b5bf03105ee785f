// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

// Copies of strided tensors between device and host memory that need no rearrangement on the device. The span of a tensor
// is its memory from the first element to the end of the last one, including gaps.

namespace at::musa {

// Returns a CPU tensor with the tensor's sizes, strides, conj and neg bits, and a copy of its span. Waits for the copy.
Tensor read_span(const Tensor& tensor);

// Copies a CPU tensor of the same sizes and strides (as returned by read_span) over the tensor's span. Correct for any
// view, including one whose elements share memory. Waits for the copy.
void write_span(const Tensor& tensor, const Tensor& host);

// Like read_span, for operators that are computed on copies: reported in torch.musa's sync debug mode.
Tensor to_cpu(const Tensor& source);

// Returns a copy of a CPU tensor on a device, with its strides if it is dense, contiguous otherwise. Waits for the copy.
Tensor to_musa(const Tensor& source, Device device);

} // namespace at::musa
