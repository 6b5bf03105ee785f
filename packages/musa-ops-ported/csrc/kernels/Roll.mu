// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>

#include "engines/aten.h"
#include "engines/elements.h"
#include "engines/for_each.muh"
#include "engines/vector.h"
#include "kernels/Roll.h"

namespace musa_ops_ported {
namespace {

at::Tensor roll_along(const at::Tensor& self, int64_t shift, int64_t dimension) {
  const int64_t size = self.size(dimension);
  const int64_t dim = dimension < 0 ? dimension + self.dim() : dimension;
  const at::Tensor out = aten::empty(self.sizes(), self.options());
  if (out.numel() == 0) {
    return out;
  }
  const int64_t back = size - ((shift % size) + size) % size; // out[k] = self[(k + back) % size]
  at::DimVector starts(self.strides());
  const int64_t stride = starts[dim];
  starts[dim] = 0;
  const int64_t inner = out.stride(dim);
  MUSA_BY_SIZE(self.element_size(), {
    Bytes* const to = elements_of<Bytes>(out, self);
    const Bytes* const in = static_cast<const Bytes*>(self.const_data_ptr());
    for_each_offset(
        self.sizes(),
        [=] __device__(int64_t i, const auto& at) {
          const int64_t from = i / inner % size + back;
          to[i] = in[at[0] + (from < size ? from : from - size) * stride];
        },
        starts);
  });
  return out;
}

} // namespace

at::Tensor roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    return roll_along(self.reshape({-1}), shifts[0], 0).view(self.sizes());
  }
  TORCH_CHECK(
      shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
      ", dims:", dims.size());
  at::Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    result = roll_along(result, shifts[i], dims[i]);
  }
  return result;
}

} // namespace musa_ops_ported
