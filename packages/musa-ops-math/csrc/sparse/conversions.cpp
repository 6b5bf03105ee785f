// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo_native.h>
#include <ATen/ops/_to_sparse_bsc_native.h>
#include <ATen/ops/_to_sparse_bsr_native.h>
#include <ATen/ops/_to_sparse_csc_native.h>
#include <ATen/ops/_to_sparse_csr_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <musa_runtime/op_pack.h>

// Conversions from dense tensors, by torch's functions, which compute on any device, and of indices.

namespace musa_ops_math::sparse {
namespace {

using at::Tensor;

// For each row its number, as often as it has elements.
Tensor rows_of(const Tensor& pointers, int64_t elements) {
  const Tensor rows = at::arange(pointers.numel() - 1, pointers.options());
  return at::repeat_interleave(rows, pointers.diff().to(at::kLong), 0, elements);
}

Tensor& csr_to_coo_out(const Tensor& pointers, const Tensor& columns, bool out_int32, bool transpose, Tensor& out) {
  const at::ScalarType dtype = out_int32 ? at::kInt : at::kLong;
  const Tensor rows = rows_of(pointers, columns.numel()).to(dtype), others = columns.to(dtype);
  const Tensor result = transpose ? at::stack({others, rows}) : at::stack({rows, others});
  out.resize_(result.sizes());
  return out.copy_(result);
}

Tensor csr_to_coo(const Tensor& pointers, const Tensor& columns, bool out_int32, bool transpose) {
  Tensor out = at::empty({0}, pointers.options().dtype(out_int32 ? at::kInt : at::kLong));
  return csr_to_coo_out(pointers, columns, out_int32, transpose, out);
}

// The number of elements in the rows before each row, and in all.
Tensor& coo_to_csr_out(const Tensor& rows, int64_t count, bool out_int32, Tensor& out) {
  const Tensor result =
      at::searchsorted(rows.contiguous(), at::arange(count + 1, rows.options()), out_int32, /*right=*/false);
  out.resize_(result.sizes());
  return out.copy_(result);
}

Tensor coo_to_csr(const Tensor& rows, int64_t count, bool out_int32) {
  Tensor out = at::empty({0}, rows.options().dtype(out_int32 ? at::kInt : at::kLong));
  return coo_to_csr_out(rows, count, out_int32, out);
}

bool are_rows(const Tensor& rows, int64_t, bool) { return rows.dim() == 1; }

bool are_rows_out(const Tensor& rows, int64_t, bool, Tensor& out) {
  return rows.dim() == 1 && out.device() == rows.device();
}

bool is_one_matrix(const Tensor& pointers, const Tensor& columns, bool, bool) {
  return pointers.dim() == 1 && columns.dim() == 1;
}

bool is_one_matrix_out(const Tensor& pointers, const Tensor& columns, bool out_int32, bool transpose, Tensor& out) {
  return out.device() == pointers.device() && is_one_matrix(pointers, columns, out_int32, transpose);
}

// torch's functions have one name.
Tensor to_sparse_of_dims(const Tensor& self, int64_t sparse_dim) {
  return at::native::dense_to_sparse(self, sparse_dim);
}

Tensor to_sparse(
    const Tensor& self, std::optional<at::Layout> layout, at::OptionalIntArrayRef block,
    std::optional<int64_t> dense_dim) {
  return at::native::dense_to_sparse(self, layout, block, dense_dim);
}

MUSA_OP_PACK(math, pack) {
  pack.impl("aten::_convert_indices_from_coo_to_csr", TORCH_FN(coo_to_csr), TORCH_FN(are_rows))
      .impl("aten::_convert_indices_from_coo_to_csr.out", TORCH_FN(coo_to_csr_out), TORCH_FN(are_rows_out))
      .impl("aten::_convert_indices_from_csr_to_coo", TORCH_FN(csr_to_coo), TORCH_FN(is_one_matrix))
      .impl("aten::_convert_indices_from_csr_to_coo.out", TORCH_FN(csr_to_coo_out), TORCH_FN(is_one_matrix_out))
      .impl("aten::_to_sparse", TORCH_FN(to_sparse))
      .impl("aten::_to_sparse.sparse_dim", TORCH_FN(to_sparse_of_dims))
      .impl("aten::_to_sparse_csr", TORCH_FN(at::native::dense_to_sparse_csr))
      .impl("aten::_to_sparse_csc", TORCH_FN(at::native::dense_to_sparse_csc))
      .impl("aten::_to_sparse_bsr", TORCH_FN(at::native::dense_to_sparse_bsr))
      .impl("aten::_to_sparse_bsc", TORCH_FN(at::native::dense_to_sparse_bsc));
}

} // namespace
} // namespace musa_ops_math::sparse
