// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <musa_runtime/op_pack.h>

#include <limits>

// Conversions between rows of one tensor with offsets (jagged) and a padded tensor, without a wait for the device.

namespace musa_ops_math {
namespace {

using at::Tensor;

// For each row of the values its component, and its place there.
struct Places {
  Tensor component, place;

  Places(const Tensor& offsets, int64_t rows) {
    const Tensor row = at::arange(rows, offsets.options());
    const int64_t last = offsets.numel() - 2;
    const Tensor found = at::searchsorted(offsets, row, /*out_int32=*/false, /*right=*/true).sub_(1);
    component = found.clamp(0, last);
    // Rows before the first and after the last component belong to none: they are beyond every length.
    place = at::where(
        found.eq(component), row.sub(offsets.index_select(0, component)), std::numeric_limits<int64_t>::max());
  }
};

bool is_one_level(at::TensorList offsets, const Tensor& values) {
  return offsets.size() == 1 && offsets[0].dim() == 1 && offsets[0].numel() > 1 &&
      offsets[0].device() == values.device();
}

bool padded_served(const Tensor& values, at::TensorList offsets, c10::SymIntArrayRef lengths, double) {
  return is_one_level(offsets, values) && lengths.size() == 1 && values.dim() >= 1;
}

Tensor padded(const Tensor& values, at::TensorList offsets, c10::SymIntArrayRef lengths, double value) {
  const int64_t components = offsets[0].numel() - 1, length = lengths[0].expect_int();
  at::DimVector sizes{components, length + 1}; // one more place, for rows beyond the length
  sizes.append(values.sizes().begin() + 1, values.sizes().end());
  Tensor result = at::full(sizes, value, values.options());
  const Places to(offsets[0], values.size(0));
  result.index_put_({to.component, to.place.clamp_max(length)}, values);
  return result.narrow(1, 0, length).contiguous();
}

bool jagged_served(const Tensor& dense, at::TensorList offsets, std::optional<c10::SymInt> rows) {
  return is_one_level(offsets, dense) && rows.has_value() && dense.dim() >= 2 && dense.size(1) > 0;
}

Tensor jagged(const Tensor& dense, at::TensorList offsets, std::optional<c10::SymInt> rows) {
  const int64_t length = dense.size(1);
  const Places from(offsets[0], rows->expect_int());
  const Tensor found = at::index(dense, {from.component, from.place.clamp_max(length - 1)});
  at::DimVector ones(static_cast<size_t>(found.dim()), 1);
  ones[0] = found.size(0);
  return at::where(from.place.lt(length).view(ones), found, at::zeros({}, found.options()));
}

MUSA_OP_PACK(math, pack) {
  pack.impl("aten::_jagged_to_padded_dense_forward", TORCH_FN(padded), TORCH_FN(padded_served))
      .impl("aten::_padded_dense_to_jagged_forward", TORCH_FN(jagged), TORCH_FN(jagged_served));
}

} // namespace
} // namespace musa_ops_math
