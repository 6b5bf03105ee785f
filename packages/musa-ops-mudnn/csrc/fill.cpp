// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// fill_, zero_ and masked_fill_.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "families.h"
#include "support/elementwise.h"
#include "support/numbers.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {

namespace {

at::Tensor& fill_number(at::Tensor& self, const at::Scalar& value) {
  run_fill(self, number_as(value, self.scalar_type()));
  return self;
}

bool fill_number_served(at::Tensor& self, const at::Scalar& /*value*/) { return serves<all_types>(self); }

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  if (is_cpu_number(value)) {
    return fill_number(self, number_in(value));
  }
  at::Tensor source = value;
  if (value.is_alias_of(self)) { // otherwise the element would be read while it is written
    source = empty_as(value, value.scalar_type());
    convert(source, value);
  }
  convert(self, source.expand(self.sizes()));
  return self;
}

bool fill_tensor_served(at::Tensor& self, const at::Tensor& value) {
  return value.dim() == 0 && self.is_privateuseone() && serves_with_numbers<all_types>(self, value) &&
      at::has_internal_overlap(self) != at::MemOverlap::Yes;
}

at::Tensor& zero(at::Tensor& self) {
  run_fill(self, 0);
  return self;
}

bool zero_served(at::Tensor& self) { return serves<all_types>(self); }

// For tensors whose elements overlap, and masks that share memory with `self`, torch's kernel warns or raises an error.
bool mask_served(const at::Tensor& self, const at::Tensor& mask) {
  return serves<all_types>(self) && serves<bool_type>(mask) && self.device() == mask.device() &&
      at::is_expandable_to(mask.sizes(), self.sizes()) && at::has_internal_overlap(self) != at::MemOverlap::Yes &&
      !self.is_alias_of(mask);
}

at::Tensor& masked_fill_number(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  run_masked_fill(self, mask.expand(self.sizes()), number_as(value, self.scalar_type()));
  return self;
}

bool masked_fill_number_served(at::Tensor& self, const at::Tensor& mask, const at::Scalar& /*value*/) {
  return mask_served(self, mask);
}

// A value on the device is not copied to the host.
at::Tensor& masked_fill_tensor(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  if (is_cpu_number(value)) {
    return masked_fill_number(self, mask, number_in(value));
  }
  run_ternary(TernaryMode::SELECT, self, mask, in_dtype(value, self.scalar_type()), self);
  return self;
}

bool masked_fill_tensor_served(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  return value.dim() == 0 && self.is_privateuseone() && mask_served(self, mask) &&
      serves_with_numbers<all_types>(self, value) && !value.is_alias_of(self);
}

} // namespace

void declare_fill(OpPack& pack) {
  pack.impl("aten::fill_.Scalar", TORCH_FN(fill_number), TORCH_FN(fill_number_served));
  pack.impl("aten::fill_.Tensor", TORCH_FN(fill_tensor), TORCH_FN(fill_tensor_served));
  pack.impl("aten::zero_", TORCH_FN(zero), TORCH_FN(zero_served));
  pack.impl("aten::masked_fill_.Scalar", TORCH_FN(masked_fill_number), TORCH_FN(masked_fill_number_served));
  pack.impl("aten::masked_fill_.Tensor", TORCH_FN(masked_fill_tensor), TORCH_FN(masked_fill_tensor_served));
}

} // namespace musa_ops_mudnn
