// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/musa/MUSACapabilities.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <declined.h>
#include <sparse/kernels.h>
#include <torch/library.h>

#include <optional>

// Products of a sparse matrix (COO, CSR, CSC) and a dense one, and products of dense matrices at the elements of a sparse one.

namespace musa_ops_math::sparse {
namespace {

using at::Scalar;
using at::Tensor;
using c10::DispatchKey;

constexpr DispatchKey kCoo = DispatchKey::SparsePrivateUse1;
constexpr DispatchKey kCompressed = DispatchKey::SparseCsrPrivateUse1;

// Empty for a dtype without kernels on this device.
std::optional<Dtype> dtype_of(at::ScalarType dtype) {
  if (c10::toRealValueType(dtype) == at::kDouble && !c10::musa::computes_float64()) {
    return std::nullopt;
  }
  switch (dtype) {
    case at::kHalf: return Dtype::kFloat16;
    case at::kBFloat16: return Dtype::kBFloat16;
    case at::kFloat: return Dtype::kFloat32;
    case at::kDouble: return Dtype::kFloat64;
    case at::kComplexFloat: return Dtype::kComplex64;
    case at::kComplexDouble: return Dtype::kComplex128;
    default: return std::nullopt;
  }
}

Number number(const Scalar& value) {
  const auto complex = value.toComplexDouble();
  return {complex.real(), complex.imag()};
}

Dense dense_of(const Tensor& matrix) {
  return {const_cast<void*>(matrix.const_data_ptr()), matrix.stride(0), matrix.stride(1)};
}

// A sparse matrix in CSR format.
struct Csr {
  Tensor pointers, columns, values;

  int64_t rows() const { return pointers.numel() - 1; }
};

Csr csr_of_coo(const Tensor& matrix) {
  const Tensor sorted = matrix.coalesce();
  const Tensor indices = sorted.indices();
  return {
      at::_convert_indices_from_coo_to_csr(indices.select(0, 0), matrix.size(0)), indices.select(0, 1).contiguous(),
      sorted.values().contiguous()};
}

bool has_blocks(const Tensor& matrix) { return matrix.layout() == at::kSparseBsr || matrix.layout() == at::kSparseBsc; }

Csr csr_of_compressed(const Tensor& matrix) {
  if (has_blocks(matrix)) {
    return csr_of_coo(matrix.to_sparse());
  }
  const Tensor csr = matrix.layout() == at::kSparseCsr ? matrix : matrix.to_sparse_csr();
  return {csr.crow_indices().contiguous(), csr.col_indices().contiguous(), csr.values().contiguous()};
}

// The transposed matrix.
Csr transposed_csr_of(const Tensor& matrix) {
  if (has_blocks(matrix)) {
    return csr_of_coo(matrix.to_sparse().t());
  }
  const Tensor csc = matrix.layout() == at::kSparseCsc ? matrix : matrix.to_sparse_csc();
  return {csc.ccol_indices().contiguous(), csc.row_indices().contiguous(), csc.values().contiguous()};
}

// out = alpha * a * b + beta * out, for matrices of one supported dtype.
void multiply(const Tensor& out, const Csr& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor operand = b.resolve_conj().resolve_neg();
  const c10::musa::MUSAGuard guard(out.device());
  const Rows rows{
      a.pointers.const_data_ptr(),
      a.columns.const_data_ptr(),
      a.values.const_data_ptr(),
      a.pointers.scalar_type() == at::kLong,
      a.rows(),
      a.values.numel()};
  launch_product(
      rows, dense_of(operand), dense_of(out), out.size(1), number(alpha), number(beta), *dtype_of(out.scalar_type()),
      c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

bool is_dense_matrix(const Tensor& tensor) { return tensor.layout() == at::kStrided && tensor.dim() == 2; }

bool are_numbers_of_one_device(const Tensor& self, const Tensor& first, const Tensor& second) {
  return self.device() == first.device() && first.device() == second.device() && self.is_privateuseone() &&
      self.scalar_type() == first.scalar_type() && first.scalar_type() == second.scalar_type() &&
      dtype_of(self.scalar_type()).has_value();
}

// Whether `self` broadcasts to the product of these matrices.
bool have_shapes_of_a_product(const Tensor& self, const Tensor& first, const Tensor& second) {
  return first.dim() == 2 && second.dim() == 2 && first.size(1) == second.size(0) &&
      at::is_expandable_to(self.sizes(), {first.size(0), second.size(1)});
}

// Gives `out` these sizes and the values of `self`, to which a product is added. A new tensor instead if `out` shares memory
// with an operand.
Tensor started(const Tensor& out, at::IntArrayRef sizes, const Tensor& self, const Scalar& beta, const Tensor& dense) {
  const bool in_place = out.is_same(self) && self.sizes() == sizes;
  const bool shared = out.is_alias_of(dense) || (out.is_alias_of(self) && !in_place);
  if (!shared) {
    at::native::resize_output(out, sizes);
  }
  const Tensor result = shared ? at::empty(sizes, out.options()) : out;
  if (!beta.equal(0) && !result.is_same(self)) {
    result.copy_(self);
  }
  return result;
}

Tensor& finished(Tensor& out, const Tensor& result) {
  if (out.is_same(result)) {
    return out;
  }
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// The CPU refuses complex factors of real matrices.
bool have_type_of(const Tensor& self, const Scalar& beta, const Scalar& alpha) {
  return self.is_complex() || (!alpha.isComplex() && !beta.isComplex());
}

// ---- COO

bool coo_served(const Tensor& self, const Tensor& first, const Tensor& second) {
  return first.layout() == at::kSparse && first.sparse_dim() == 2 && first.dense_dim() == 0 &&
      is_dense_matrix(second) && self.layout() == at::kStrided && are_numbers_of_one_device(self, first, second) &&
      have_shapes_of_a_product(self, first, second);
}

Tensor& coo_product(
    const Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha,
    Tensor& out) {
  const Tensor result = started(out, {first.size(0), second.size(1)}, self, beta, second);
  multiply(result, csr_of_coo(first), second, beta, alpha);
  return finished(out, result);
}

Tensor addmm(const Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha) {
  if (!coo_served(self, first, second) || !have_type_of(self, beta, alpha)) {
    return declined<Tensor, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&>(
        kCoo, "aten::addmm", "", self, first, second, beta, alpha);
  }
  Tensor out = at::empty({first.size(0), second.size(1)}, self.options());
  return coo_product(self, first, second, beta, alpha, out);
}

Tensor& addmm_out(
    const Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha,
    Tensor& out) {
  if (!coo_served(self, first, second) || !have_type_of(self, beta, alpha) || out.layout() != at::kStrided ||
      out.scalar_type() != self.scalar_type() || out.device() != self.device()) {
    return declined<Tensor&, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&, Tensor&>(
        kCoo, "aten::addmm", "out", self, first, second, beta, alpha, out);
  }
  return coo_product(self, first, second, beta, alpha, out);
}

Tensor& addmm_(Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha) {
  if (!coo_served(self, first, second) || !have_type_of(self, beta, alpha) || self.dim() != 2 ||
      self.size(0) != first.size(0) || self.size(1) != second.size(1)) {
    return declined<Tensor&, Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&>(
        kCoo, "aten::addmm_", "", self, first, second, beta, alpha);
  }
  return coo_product(self, first, second, beta, alpha, self);
}

// A batch of matrices is one matrix with its blocks along the diagonal.
bool batch_served(const Tensor& first, const Tensor& second) {
  return first.layout() == at::kSparse && first.dim() == 3 && first.sparse_dim() == 3 && second.dim() == 3 &&
      second.layout() == at::kStrided && first.size(0) == second.size(0) && first.size(2) == second.size(1) &&
      are_numbers_of_one_device(first, first, second);
}

Tensor batch_product(const Tensor& first, const Tensor& second) {
  const int64_t batch = first.size(0), rows = first.size(1), inner = first.size(2), columns = second.size(2);
  const Tensor sorted = first.coalesce();
  const Tensor indices = sorted.indices(), number_in_batch = indices.select(0, 0);
  const Csr blocks{
      at::_convert_indices_from_coo_to_csr(number_in_batch.mul(rows).add_(indices.select(0, 1)), batch * rows),
      number_in_batch.mul(inner).add_(indices.select(0, 2)), sorted.values().contiguous()};
  const Tensor result = at::empty({batch, rows, columns}, second.options());
  multiply(result.view({batch * rows, columns}), blocks, second.reshape({batch * inner, columns}), 0, 1);
  return result;
}

Tensor bmm(const Tensor& self, const Tensor& other) {
  if (!batch_served(self, other)) {
    return declined<Tensor, const Tensor&, const Tensor&>(kCoo, "aten::bmm", "", self, other);
  }
  return batch_product(self, other);
}

Tensor& bmm_out(const Tensor& self, const Tensor& other, Tensor& out) {
  if (!batch_served(self, other) || out.layout() != at::kStrided || out.scalar_type() != self.scalar_type() ||
      out.device() != self.device()) {
    return declined<Tensor&, const Tensor&, const Tensor&, Tensor&>(kCoo, "aten::bmm", "out", self, other, out);
  }
  const Tensor result = batch_product(self, other);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// ---- compressed layouts

bool is_compressed_matrix(const Tensor& tensor) {
  return at::sparse_csr::is_sparse_compressed(tensor) && tensor.dim() == 2;
}

Tensor& compressed_addmm_out(
    const Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha,
    Tensor& out) {
  const bool left = is_compressed_matrix(first) && is_dense_matrix(second);
  const bool right = is_dense_matrix(first) && is_compressed_matrix(second);
  if ((!left && !right) || !have_type_of(self, beta, alpha) || self.layout() != at::kStrided ||
      out.layout() != at::kStrided || out.scalar_type() != self.scalar_type() || out.device() != self.device() ||
      !are_numbers_of_one_device(self, first, second) || !have_shapes_of_a_product(self, first, second)) {
    return declined<Tensor&, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&, Tensor&>(
        kCompressed, "aten::addmm", "out", self, first, second, beta, alpha, out);
  }
  const Tensor result = started(out, {first.size(0), second.size(1)}, self, beta, left ? second : first);
  if (left) {
    multiply(result, csr_of_compressed(first), second, beta, alpha);
  } else {
    multiply(result.t(), transposed_csr_of(second), first.t(), beta, alpha);
  }
  return finished(out, result);
}

Tensor& compressed_addmv_out(
    const Tensor& self, const Tensor& matrix, const Tensor& vector, const Scalar& beta, const Scalar& alpha,
    Tensor& out) {
  if (!is_compressed_matrix(matrix) || !have_type_of(self, beta, alpha) || vector.layout() != at::kStrided ||
      vector.dim() != 1 || self.layout() != at::kStrided || out.layout() != at::kStrided ||
      out.scalar_type() != self.scalar_type() || out.device() != self.device() ||
      !are_numbers_of_one_device(self, matrix, vector) || matrix.size(1) != vector.size(0) ||
      !at::is_expandable_to(self.sizes(), {matrix.size(0)})) {
    return declined<Tensor&, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&, Tensor&>(
        kCompressed, "aten::addmv", "out", self, matrix, vector, beta, alpha, out);
  }
  const Tensor result = started(out, {matrix.size(0)}, self, beta, vector);
  multiply(result.unsqueeze(1), csr_of_compressed(matrix), vector.unsqueeze(1), beta, alpha);
  return finished(out, result);
}

// ---- products at the elements of a sparse matrix

bool sampled_served(const Tensor& self, const Tensor& first, const Tensor& second) {
  return self.layout() == at::kSparseCsr && self.dim() == 2 && is_dense_matrix(first) && is_dense_matrix(second) &&
      are_numbers_of_one_device(self, first, second) && first.size(1) == second.size(0) &&
      self.size(0) == first.size(0) && self.size(1) == second.size(1);
}

Tensor sampled_values(
    const Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha) {
  const Csr pattern = csr_of_compressed(self);
  Tensor values = at::empty_like(pattern.values);
  if (values.numel() == 0) {
    return values;
  }
  const bool wide = pattern.pointers.scalar_type() == at::kLong;
  const Tensor rows =
      at::_convert_indices_from_csr_to_coo(pattern.pointers, pattern.columns, /*out_int32=*/!wide).select(0, 0);
  const Tensor a = first.resolve_conj().resolve_neg(), b = second.resolve_conj().resolve_neg();
  const c10::musa::MUSAGuard guard(self.device());
  launch_sampled_product(
      rows.const_data_ptr(), pattern.columns.const_data_ptr(), wide, values.numel(), dense_of(a), dense_of(b),
      a.size(1), pattern.values.const_data_ptr(), values.mutable_data_ptr(), number(alpha), number(beta),
      *dtype_of(values.scalar_type()), c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return values;
}

Tensor sampled_addmm(
    const Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha) {
  if (!have_type_of(self, beta, alpha) || !sampled_served(self, first, second)) {
    return declined<Tensor, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&>(
        kCompressed, "aten::sparse_sampled_addmm", "", self, first, second, beta, alpha);
  }
  return at::_sparse_compressed_tensor_unsafe(
      self.crow_indices(), self.col_indices(), sampled_values(self, first, second, beta, alpha), self.sizes(),
      self.options());
}

Tensor& sampled_addmm_out(
    const Tensor& self, const Tensor& first, const Tensor& second, const Scalar& beta, const Scalar& alpha,
    Tensor& out) {
  if (!have_type_of(self, beta, alpha) || !sampled_served(self, first, second) || out.layout() != at::kSparseCsr ||
      out.device() != self.device() || out.scalar_type() != self.scalar_type()) {
    return declined<Tensor&, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&, Tensor&>(
        kCompressed, "aten::sparse_sampled_addmm", "out", self, first, second, beta, alpha, out);
  }
  const Tensor values = sampled_values(self, first, second, beta, alpha);
  if (out.is_same(self)) {
    out.values().copy_(values);
  } else {
    at::sparse_csr::get_sparse_csr_impl(out)->set_member_tensors(
        self.crow_indices().clone(), self.col_indices().clone(), values, self.sizes());
  }
  return out;
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  library.impl("addmm", TORCH_FN(addmm));
  library.impl("addmm.out", TORCH_FN(addmm_out));
  library.impl("addmm_", TORCH_FN(addmm_));
  library.impl("bmm", TORCH_FN(bmm));
  library.impl("bmm.out", TORCH_FN(bmm_out));
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  library.impl("addmm.out", TORCH_FN(compressed_addmm_out));
  library.impl("addmv.out", TORCH_FN(compressed_addmv_out));
  library.impl("sparse_sampled_addmm", TORCH_FN(sampled_addmm));
  library.impl("sparse_sampled_addmm.out", TORCH_FN(sampled_addmm_out));
}

} // namespace
} // namespace musa_ops_math::sparse
