// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The one mapping of torch's tensors to muDNN's.
#pragma once

#include <ATen/core/Tensor.h>
#include <mudnn.h>

#include <optional>

#include "support/operand.h"

namespace musa_ops_mudnn {

namespace dnn = ::musa::dnn;

// Raises for a dtype that muDNN has no name for; predicates keep those away.
dnn::Tensor::Type type_of(at::ScalarType dtype);

// Whether muDNN writes to a tensor. Describing a lazy clone for writing gives it memory of its own; for reading, it stays
// lazy. The default is the one that is right for both.
enum class Access : uint8_t { Read, Write };
inline constexpr Access kRead = Access::Read;

// Dimensions and strides as they are. An undefined tensor gives an absent operand.
dnn::Tensor describe(const at::Tensor& tensor, Access access = Access::Write);
// The same for an operand that muDNN only reads.
dnn::Tensor operand(const at::Tensor& tensor);
dnn::Tensor operand(const std::optional<at::Tensor>& tensor);
inline dnn::Tensor operand(const Operand& tensor) {
  return operand(*tensor);
}
// Whether an optional argument is there. torch passes an undefined tensor for one that is not, too.
inline bool given(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined();
}
// Contiguous where it is there, undefined where it is not.
inline Operand contiguous_or_none(const std::optional<at::Tensor>& tensor) {
  return given(tensor) ? contiguous(*tensor) : Operand(at::Tensor());
}
// The same memory under another shape.
dnn::Tensor describe_as(
    const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides, Access access = Access::Write);

// A tensor (N, C, space...) of 3, 4 or 5 dimensions for the operations that look at the format: in the order of the letters
// of NHWC and its relatives where that is how the memory lies, of NCHW otherwise. The memory is dense in that order.
dnn::Tensor describe_channels(const at::Tensor& tensor, at::MemoryFormat format, Access access = Access::Write);
// The format of 4- and 5-dimensional tensors that lie in channels-last order; Contiguous else.
at::MemoryFormat channels_format(const at::Tensor& tensor);

} // namespace musa_ops_mudnn
