// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/Cross.h>

#include "engines/dispatch.h"
#include "engines/for_each.muh"

namespace musa_ops_ported {
namespace {

void cross(const at::Tensor& out, const at::Tensor& first, const at::Tensor& second, const int64_t dim) {
  at::DimVector shape(out.sizes());
  shape[dim] = 1;
  const int64_t c = out.stride(dim), a = first.stride(dim), b = second.stride(dim);
  MUSA_DISPATCH(out.scalar_type(), "cross", (MUSA_REAL, AT_EXPAND(AT_COMPLEX_TYPES)), {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    const scalar_t* const lhs = first.const_data_ptr<scalar_t>();
    const scalar_t* const rhs = second.const_data_ptr<scalar_t>();
    for_each_offset(
        shape,
        [=] __device__(int64_t, const auto& at) {
          op_t u[3], v[3];
          for (int k = 0; k < 3; ++k) {
            u[k] = static_cast<op_t>(lhs[at[1] + k * a]);
            v[k] = static_cast<op_t>(rhs[at[2] + k * b]);
          }
          to[at[0]] = static_cast<scalar_t>(u[1] * v[2] - u[2] * v[1]);
          to[at[0] + c] = static_cast<scalar_t>(u[2] * v[0] - u[0] * v[2]);
          to[at[0] + 2 * c] = static_cast<scalar_t>(u[0] * v[1] - u[1] * v[0]);
        },
        out.strides(), first.strides(), second.strides());
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(cross_stub, &musa_ops_ported::cross)
} // namespace at::native
