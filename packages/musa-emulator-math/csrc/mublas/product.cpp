// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/mm.h>

#include "mublas/product.h"

namespace musa_emulator::blas {

void multiply(
    const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha, const at::Scalar& beta) {
  if (a.size(-1) == 0) { // the sum is empty
    beta.equal(0) ? c.zero_() : c.mul_(beta);
    return;
  }
  at::Tensor out = c;
  if (c.dim() == 2) {
    at::addmm_out(out, c, a, b, beta, alpha);
  } else {
    at::baddbmm_out(out, c, a, b, beta, alpha);
  }
}

std::optional<at::ScalarType> scalar_type(musaDataType type) {
  switch (type) {
    case MUSA_R_16F: return at::kHalf;
    case MUSA_R_16BF: return at::kBFloat16;
    case MUSA_R_32F: return at::kFloat;
    case MUSA_R_64F: return at::kDouble;
    case MUSA_C_32F: return at::kComplexFloat;
    case MUSA_C_64F: return at::kComplexDouble;
    case MUSA_R_8I: return at::kChar;
    case MUSA_R_32I: return at::kInt;
    case MUSA_R_8F_E4M3: return at::kFloat8_e4m3fn;
    case MUSA_R_8F_E5M2: return at::kFloat8_e5m2;
    default: return std::nullopt;
  }
}

std::optional<at::ScalarType> compute_type(mublasComputeType_t compute, at::ScalarType result) {
  switch (compute) {
    case MUBLAS_COMPUTE_16F:
    case MUBLAS_COMPUTE_32F:
    case MUBLAS_COMPUTE_32F_FAST_16F:
    case MUBLAS_COMPUTE_32F_FAST_TF32: return c10::isComplexType(result) ? at::kComplexFloat : at::kFloat;
    case MUBLAS_COMPUTE_64F: return c10::isComplexType(result) ? at::kComplexDouble : at::kDouble;
    case MUBLAS_COMPUTE_32I: return at::kDouble;
  }
  return std::nullopt;
}

at::Scalar Factor::read(const void* pointer, at::ScalarType type) {
  switch (type) {
    case at::kHalf: return static_cast<double>(*static_cast<const at::Half*>(pointer));
    case at::kInt: return static_cast<double>(*static_cast<const int*>(pointer));
    case at::kDouble: return *static_cast<const double*>(pointer);
    case at::kComplexFloat: return *static_cast<const c10::complex<float>*>(pointer);
    case at::kComplexDouble: return *static_cast<const c10::complex<double>*>(pointer);
    default: return *static_cast<const float*>(pointer);
  }
}

at::Tensor Product::left(const void* of_a) const {
  const bool kept = transa == MUBLAS_OP_N;
  return transposed(matrix(of_a, kept ? m : k, kept ? k : m, lda, a).to(compute), transa);
}

at::Tensor Product::right(const void* of_b) const {
  const bool kept = transb == MUBLAS_OP_N;
  return transposed(matrix(of_b, kept ? k : n, kept ? n : k, ldb, b).to(compute), transb);
}

at::Tensor Product::compute_product(const void* of_a, const void* of_b) const {
  return at::mm(left(of_a), right(of_b));
}

void Product::operator()(
    const void* of_a, const void* of_b, void* of_c, const at::Scalar& alpha, const at::Scalar& beta) const {
  const at::Tensor result = matrix(of_c, m, n, ldc, c);
  if (c == compute) {
    multiply(result, left(of_a), right(of_b), alpha, beta);
    return;
  }
  at::Tensor sum = compute_product(of_a, of_b).mul_(alpha);
  if (!beta.equal(0)) {
    sum.add_(result.to(compute), beta);
  }
  result.copy_(sum);
}

mublasStatus_t prepare(
    mublasOperation_t transa, mublasOperation_t transb, int64_t m, int64_t n, int64_t k, musaDataType atype,
    int64_t lda, musaDataType btype, int64_t ldb, musaDataType ctype, int64_t ldc, mublasComputeType_t compute,
    int64_t batch, Product* product) {
  if (!known(transa) || !known(transb)) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  const std::optional<at::ScalarType> a = scalar_type(atype), b = scalar_type(btype), c = scalar_type(ctype);
  if (!a || !b || !c) {
    return MUBLAS_STATUS_NOT_IMPLEMENTED;
  }
  const std::optional<at::ScalarType> in = compute_type(compute, *c);
  if (!in) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  if (m < 0 || n < 0 || k < 0 || batch < 0 || !holds(lda, transa == MUBLAS_OP_N ? m : k) ||
      !holds(ldb, transb == MUBLAS_OP_N ? k : n) || !holds(ldc, m)) {
    return MUBLAS_STATUS_INVALID_SIZE;
  }
  *product = {transa, transb, m, n, k, *a, *b, *c, *in, lda, ldb, ldc};
  return MUBLAS_STATUS_SUCCESS;
}

} // namespace musa_emulator::blas
