// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Calls of muDNN through the runtime's interface, with the settings of torch.backends.mudnn.
#pragma once

#include <musa_runtime/mudnn.h>

#include "support/settings.h"

namespace musa_ops_mudnn {

namespace dnn = ::musa::dnn;

using musa_runtime::contiguous;
using musa_runtime::Operand;
using musa_runtime::mudnn::Access;
using musa_runtime::mudnn::channels_format;
using musa_runtime::mudnn::check;
using musa_runtime::mudnn::contiguous_or_none;
using musa_runtime::mudnn::describe;
using musa_runtime::mudnn::describe_as;
using musa_runtime::mudnn::describe_channels;
using musa_runtime::mudnn::given;
using musa_runtime::mudnn::kRead;
using musa_runtime::mudnn::operand;
using musa_runtime::mudnn::type_of;

class OnDevice : public musa_runtime::mudnn::OnDevice {
 public:
  explicit OnDevice(const at::Tensor& tensor, bool allow_tf32 = settings().allow_tf32)
      : musa_runtime::mudnn::OnDevice(tensor, allow_tf32) {}
};

} // namespace musa_ops_mudnn
