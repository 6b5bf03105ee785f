// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Products of matrices and vectors.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_addmm_activation_meta.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/mm_meta.h>
#include <musa_runtime/mudnn.h>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/matrices.h"
#include "support/parameters.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

// ---- operands

// An operand of a product. Copied only if it is neither row-major nor column-major.
class Factor {
 public:
  explicit Factor(const at::Tensor& tensor)
      : order_(matrix_order(tensor)),
        tensor_(order_ == MatrixOrder::Neither ? Operand(tensor.contiguous()) : Operand::borrowed(tensor)),
        described_(describe_stored(tensor_, order_ == MatrixOrder::Columns ? order_ : MatrixOrder::Rows, kRead)) {}
  bool transposed() const { return order_ == MatrixOrder::Columns; }
  operator const dnn::Tensor&() const { return described_; }

 private:
  const MatrixOrder order_; // of the original tensor
  const Operand tensor_;
  const dnn::Tensor described_;
};

bool overlap(const at::Tensor& out, const at::Tensor& operand) {
  return out.is_alias_of(operand) && at::get_overlap_status(out, operand) != at::MemOverlapStatus::No;
}

bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) ||
      (a.const_data_ptr() == b.const_data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides());
}

// ---- the product

// The term beta * tensor. If beta is 0, the tensor is not read, so its NaNs have no effect.
struct Addend {
  const at::Tensor* tensor = nullptr;
  double beta = 0;

  Addend() = default;
  Addend(const at::Tensor& self, const at::Scalar& scale) : tensor(&self), beta(scale.toDouble()) {
    if (beta == 0) {
      tensor = nullptr;
    }
  }
  bool is_row_of(const at::Tensor& out) const {
    const at::IntArrayRef sizes = tensor->sizes();
    const int64_t columns = out.sizes().back();
    return !sizes.empty() && sizes.back() == columns && tensor->numel() == columns;
  }
};

template <class Operation>
struct Labels;
template <>
struct Labels<dnn::MatMul> {
  static constexpr const char* run = "MatMul::Run";
  static constexpr const char* add = "MatMul::RunWithBiasAdd";
};
template <>
struct Labels<dnn::BatchMatMul> {
  static constexpr const char* run = "BatchMatMul::Run";
  static constexpr const char* add = "BatchMatMul::RunWithBiasAdd";
};

// Computes out = alpha * a * b + addend; takes_result(out) must be true.
template <class Operation>
void multiply_into(
    const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const Addend& addend, double alpha) {
  using Label = Labels<Operation>;
  const Factor left(a);
  const Factor right(b);
  const bool allow_tf32 = products_may_round();
  Operation op;
  check(op.SetComputeMode(compute_mode(a.scalar_type(), allow_tf32)), "SetComputeMode");
  check(op.SetTranspose(left.transposed(), right.transposed()), "SetTranspose");
  check(op.SetAlpha(alpha), "SetAlpha");
  if constexpr (std::is_same_v<Operation, dnn::BatchMatMul>) {
    check(op.SetDeterministic(must_repeat()), "SetDeterministic");
  }

  const OnDevice on(out, allow_tf32);
  dnn::Tensor result = describe_stored(out, MatrixOrder::Rows);
  if (addend.tensor == nullptr) {
    check(op.SetBeta(0.0), "SetBeta");
    check(op.Run(on.handle(), result, left, right, on.workspace()), Label::run, {&out, &a, &b});
    return;
  }

  const at::Tensor& self = *addend.tensor;
  const bool full = self.sizes() == out.sizes();
  if (full && !is_same_view(self, out) && matrix_order(self) == MatrixOrder::Rows) {
    check(op.SetBeta(addend.beta), "SetBeta");
    check(
        op.RunWithBiasAdd(
            on.handle(), result, left, right, describe_stored(self, MatrixOrder::Rows, kRead), dnn::Tensor(),
            on.workspace()),
        Label::add, {&out, &a, &b, &self});
  } else if (!full && addend.is_row_of(out)) {
    const int64_t size = out.sizes().back();
    const Operand row = size == 1 ? Operand::borrowed(self) : contiguous(self);
    check(op.SetBeta(0.0), "SetBeta");
    check(op.SetGamma(addend.beta), "SetGamma");
    check(
        op.RunWithBiasAdd(
            on.handle(), result, left, right, dnn::Tensor(), describe_as(row, {size}, {1}, kRead), on.workspace()),
        Label::add, {&out, &a, &b, &self});
  } else {
    if (!is_same_view(self, out)) {
      run_unary(UnaryMode::IDENTITY, out, self.expand(out.sizes()));
    }
    check(op.SetBeta(addend.beta), "SetBeta");
    check(op.Run(on.handle(), result, left, right, on.workspace()), Label::run, {&out, &a, &b});
  }
}

// Computes out = alpha * a * b + addend for matrices, a matrix and a vector, or batches of matrices.
void multiply(
    const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const Addend& addend = {}, double alpha = 1) {
  const bool addend_in_the_way =
      addend.tensor != nullptr && !is_same_view(*addend.tensor, out) && overlap(out, *addend.tensor);
  if (!takes_result(out) || overlap(out, a) || overlap(out, b) || addend_in_the_way) [[unlikely]] {
    at::assert_no_internal_overlap(out);
    if (addend_in_the_way) {
      // torch's kernels copy the addend to the result, and the copy raises this error.
      at::assert_no_partial_overlap(out, addend.tensor->expand(out.sizes()));
    }
    const at::Tensor result = new_empty(out, out.sizes());
    multiply(result, a, b, addend, alpha);
    convert(out, result);
  } else if (out.dim() == 3) {
    multiply_into<dnn::BatchMatMul>(out, a, b, addend, alpha);
  } else {
    multiply_into<dnn::MatMul>(out, a, b, addend, alpha);
  }
}

// ---- predicates

bool real(const at::Scalar& a, const at::Scalar& b) { return is_parameter(a) && is_parameter(b); }

// Whether the shapes match and the dtypes are equal; otherwise torch's own kernel raises the error.
bool match(const at::Tensor& a, const at::Tensor& b, size_t dims) {
  const at::IntArrayRef left = a.sizes();
  const at::IntArrayRef right = b.sizes();
  return left.size() == dims && right.size() == dims && a.scalar_type() == b.scalar_type() &&
      left[dims - 1] == right[dims - 2] && (dims == 2 || left[0] == right[0]);
}

bool match_vector(const at::Tensor& matrix, const at::Tensor& vector) {
  return matrix.dim() == 2 && vector.dim() == 1 && matrix.scalar_type() == vector.scalar_type() &&
      matrix.size(1) == vector.size(0);
}

bool adds(const at::Tensor& self, const at::Tensor& factor, at::IntArrayRef sizes) {
  return self.scalar_type() == factor.scalar_type() && at::is_expandable_to(self.sizes(), sizes);
}

bool mm_served(const at::Tensor& self, const at::Tensor& other) {
  return serves<matrix_types>(self, other) && match(self, other, 2);
}

bool bmm_served(const at::Tensor& self, const at::Tensor& other) {
  return serves<matrix_types>(self, other) && match(self, other, 3);
}

bool addmm_served(
    const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return serves<matrix_types>(self, a, b) && match(a, b, 2) && adds(self, a, {a.sizes()[0], b.sizes()[1]}) &&
      real(beta, alpha);
}

bool addmm_activation_served(
    const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha,
    bool /*use_gelu*/) {
  return addmm_served(self, a, b, beta, alpha);
}

bool baddbmm_served(
    const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return serves<matrix_types>(self, a, b) && match(a, b, 3) &&
      adds(self, a, {a.sizes()[0], a.sizes()[1], b.sizes()[2]}) && real(beta, alpha);
}

bool mv_served(const at::Tensor& self, const at::Tensor& vector) {
  return serves<matrix_types>(self, vector) && match_vector(self, vector);
}

bool addmv_served(
    const at::Tensor& self, const at::Tensor& matrix, const at::Tensor& vector, const at::Scalar& beta,
    const at::Scalar& alpha) {
  return serves<matrix_types>(self, matrix, vector) && match_vector(matrix, vector) &&
      adds(self, matrix, {matrix.size(0)}) && real(beta, alpha);
}

bool dot_served(const at::Tensor& self, const at::Tensor& other) {
  return serves<matrix_types>(self, other) && self.dim() == 1 && other.dim() == 1 &&
      self.scalar_type() == other.scalar_type() && self.size(0) == other.size(0);
}

// ---- operators with a meta function

void mm(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) { multiply(out, self, other); }

void addmm(
    const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha,
    const at::Tensor& out) {
  multiply(out, a, b, Addend(self, beta), alpha.toDouble());
}

void addmm_activation(
    const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha,
    bool use_gelu, const at::Tensor& out) {
  multiply(out, a, b, Addend(self, beta), alpha.toDouble());
  run_unary(use_gelu ? UnaryMode::GELU : UnaryMode::RELU, out, out);
}

// ---- operators without a meta function: the kernel, and the wrapper of each overload

at::Tensor mv(const at::Tensor& self, const at::Tensor& vector) {
  at::Tensor out = new_empty(self, {self.size(0)});
  multiply(out, self, vector);
  return out;
}

at::Tensor& mv_out(const at::Tensor& self, const at::Tensor& vector, at::Tensor& out) {
  multiply(resized(out, {self.size(0)}), self, vector);
  return out;
}

bool mv_out_served(const at::Tensor& self, const at::Tensor& vector, at::Tensor& out) {
  return mv_served(self, vector) && takes_out_of(out, self, self.scalar_type());
}

at::Tensor dot(const at::Tensor& self, const at::Tensor& other) {
  at::Tensor out = new_empty(self, {});
  const Factor left(self);
  const Factor right(other);
  const bool allow_tf32 = products_may_round();
  dnn::Dot op;
  check(op.SetComputeMode(compute_mode(self.scalar_type(), allow_tf32)), "Dot::SetComputeMode");
  const OnDevice on(out, allow_tf32);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, left, right, on.workspace()), "Dot::Run", {&out, &self, &other});
  return out;
}

// The sum of the products equals one product: of the matrices concatenated along columns and along rows.
void sum_products(
    const at::Tensor& out, const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
    const at::Scalar& beta, const at::Scalar& alpha) {
  const int64_t inner = batch2.size(0) * batch2.size(1);
  multiply(
      out, batch1.transpose(0, 1).reshape({batch1.size(1), inner}), batch2.reshape({inner, batch2.size(2)}),
      Addend(self, beta), alpha.toDouble());
}

bool addbmm_served(
    const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha) {
  return serves<matrix_types>(self, batch1, batch2) && match(batch1, batch2, 3) &&
      adds(self, batch1, {batch1.size(1), batch2.size(2)}) && real(beta, alpha);
}

at::Tensor addbmm(
    const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha) {
  at::Tensor out = at::empty({batch1.size(1), batch2.size(2)}, self.options());
  sum_products(out, self, batch1, batch2, beta, alpha);
  return out;
}

at::Tensor& addbmm_out(
    const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha, at::Tensor& out) {
  sum_products(resized(out, {batch1.size(1), batch2.size(2)}), self, batch1, batch2, beta, alpha);
  return out;
}

bool addbmm_out_served(
    const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha, at::Tensor& out) {
  return addbmm_served(self, batch1, batch2, beta, alpha) && takes_out_of(out, self, self.scalar_type());
}

at::Tensor& addbmm_(
    at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha) {
  sum_products(self, self, batch1, batch2, beta, alpha);
  return self;
}

bool addbmm_in_place_served(
    at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha) {
  return addbmm_served(self, batch1, batch2, beta, alpha) && self.dim() == 2 && self.size(0) == batch1.size(1) &&
      self.size(1) == batch2.size(2);
}

} // namespace

void declare_matmul(OpPack& pack) {
  structured<at::meta::structured_mm, mm, mm_served>(pack, {"aten::mm", "aten::mm.out"});
  structured<at::meta::structured_bmm, mm, bmm_served>(pack, {"aten::bmm", "aten::bmm.out"});
  structured<at::meta::structured_addmm, addmm, addmm_served>(pack, {"aten::addmm", "aten::addmm.out", "aten::addmm_"});
  structured<at::meta::structured_baddbmm, addmm, baddbmm_served>(
      pack, {"aten::baddbmm", "aten::baddbmm.out", "aten::baddbmm_"});
  structured<at::meta::structured_addmv, addmm, addmv_served>(pack, {"aten::addmv", "aten::addmv.out", "aten::addmv_"});
  structured<at::meta::structured__addmm_activation, addmm_activation, addmm_activation_served>(
      pack, {"aten::_addmm_activation", "aten::_addmm_activation.out"});

  pack.impl("aten::mv", TORCH_FN(mv), TORCH_FN(mv_served));
  pack.impl("aten::mv.out", TORCH_FN(mv_out), TORCH_FN(mv_out_served));
  pack.impl("aten::dot", TORCH_FN(dot), TORCH_FN(dot_served));
  pack.impl("aten::vdot", TORCH_FN(dot), TORCH_FN(dot_served)); // for real numbers
  pack.impl("aten::addbmm", TORCH_FN(addbmm), TORCH_FN(addbmm_served));
  pack.impl("aten::addbmm.out", TORCH_FN(addbmm_out), TORCH_FN(addbmm_out_served));
  pack.impl("aten::addbmm_", TORCH_FN(addbmm_), TORCH_FN(addbmm_in_place_served));
}

} // namespace musa_ops_mudnn
