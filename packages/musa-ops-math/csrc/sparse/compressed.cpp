// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/result_type.h>
#include <declined.h>
#include <torch/library.h>

// Conversions between CSR and CSC, and sums, through the coordinates of the elements.

namespace musa_ops_math::sparse {
namespace {

using at::Layout;
using at::Scalar;
using at::Tensor;
using c10::DispatchKey;

// Sorts the elements of a CSR matrix by columns, or those of a CSC matrix by rows.
Tensor flipped(const Tensor& self, Layout layout) {
  const bool by_rows = self.layout() == at::kSparseCsr;
  const Tensor pointers = by_rows ? self.crow_indices() : self.ccol_indices();
  const Tensor plain = by_rows ? self.col_indices() : self.row_indices();
  const bool narrow = pointers.scalar_type() == at::kInt;
  const Tensor grouped = at::_convert_indices_from_csr_to_coo(pointers, plain, narrow).select(0, 0);
  const auto [sorted, order] = plain.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor counts = at::_convert_indices_from_coo_to_csr(sorted, self.size(by_rows ? 1 : 0), narrow);
  return at::_sparse_compressed_tensor_unsafe(
      counts, grouped.index_select(0, order), self.values().index_select(0, order), self.sizes(),
      self.options().layout(layout));
}

Tensor converted(const Tensor& self, Layout layout, std::optional<int64_t> dense_dim, const char* name) {
  const bool both = (self.layout() == at::kSparseCsr || self.layout() == at::kSparseCsc) && self.dim() == 2;
  if (!both || dense_dim.value_or(0) != 0) {
    return declined<Tensor, const Tensor&, std::optional<int64_t>>(
        DispatchKey::SparseCsrPrivateUse1, name, "", self, dense_dim);
  }
  return self.layout() == layout ? self.clone() : flipped(self, layout);
}

Tensor to_csr(const Tensor& self, std::optional<int64_t> dense_dim) {
  return converted(self, at::kSparseCsr, dense_dim, "aten::_to_sparse_csr");
}

Tensor to_csc(const Tensor& self, std::optional<int64_t> dense_dim) {
  return converted(self, at::kSparseCsc, dense_dim, "aten::_to_sparse_csc");
}

Tensor& compressed_add_out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  const auto is_csr = [](const Tensor& tensor) { return tensor.layout() == at::kSparseCsr && tensor.dim() == 2; };
  const at::ScalarType common = at::result_type(self, other);
  if (!is_csr(self) || !is_csr(other) || out.layout() != at::kSparseCsr || self.sizes() != other.sizes() ||
      self.device() != other.device() || self.device() != out.device() || common == at::kBool ||
      self.crow_indices().scalar_type() != other.crow_indices().scalar_type() ||
      !at::canCast(common, out.scalar_type())) {
    return declined<Tensor&, const Tensor&, const Tensor&, const Scalar&, Tensor&>(
        DispatchKey::SparseCsrPrivateUse1, "aten::add", "out", self, other, alpha, out);
  }
  const at::ScalarType index = self.crow_indices().scalar_type();
  const Tensor sum = self.to_sparse().add(other.to_sparse(), alpha).to_sparse_csr();
  at::sparse_csr::get_sparse_csr_impl(out)->set_member_tensors(
      sum.crow_indices().to(index), sum.col_indices().to(index), sum.values().to(out.scalar_type()), sum.sizes());
  return out;
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  library.impl("_to_sparse_csc", TORCH_FN(to_csc));
  library.impl("_to_sparse_csr", TORCH_FN(to_csr));
  library.impl("add.out", TORCH_FN(compressed_add_out));
}

} // namespace
} // namespace musa_ops_math::sparse
