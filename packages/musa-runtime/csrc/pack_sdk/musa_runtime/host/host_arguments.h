// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/musa/MUSAMacros.h>

#include <cstdint>
#include <string>
#include <string_view>

// The arguments of an operator that accept tensors in host memory together with musa tensors, as on torch.cuda. The table
// is in host_arguments.inc.

namespace musa_runtime {

enum class HostTensor : uint8_t {
  Refused,
  Indexed, // refused, with the error of advanced indexing
  Number, // one 0-dim tensor per call, torch's rule for TensorIterator operators
  Value, // 0-dim tensors
  Any,
};

// The rule for an argument. `op` is a schema's name without overload, "aten::add_".
C10_MUSA_API HostTensor host_tensor_rule(std::string_view op, std::string_view argument);

// Whether the operator returns tensors in host memory, whatever the device of its arguments.
C10_MUSA_API bool returns_host_tensors(std::string_view op);

// Checks the host tensors of one call.
class C10_MUSA_API HostTensorCheck {
 public:
  // Raises unless the rule accepts the tensor, which is not on a musa device. `device` is that of the other arguments.
  void admit(const at::Tensor& tensor, HostTensor rule, at::Device device);

 private:
  bool has_number_ = false;
};

} // namespace musa_runtime
