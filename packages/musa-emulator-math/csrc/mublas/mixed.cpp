// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// mublasGemmEx and its batched variants.
#include "mublas/product.h"

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

at::ScalarType factor_type(mublasComputeType_t compute, bool complex) {
  switch (compute) {
    case MUBLAS_COMPUTE_16F: return at::kHalf;
    case MUBLAS_COMPUTE_32I: return at::kInt;
    case MUBLAS_COMPUTE_64F: return complex ? at::kComplexDouble : at::kDouble;
    default: return complex ? at::kComplexFloat : at::kFloat;
  }
}

// The arguments that all variants share.
struct Arguments {
  mublasOperation_t transa, transb;
  int m, n, k;
  const void *alpha, *beta;
  musaDataType atype, btype, ctype;
  int lda, ldb, ldc;
  mublasComputeType_t compute;
  int batch;
};

// `run(product, i, alpha, beta)` computes product i of the batch. `has_inputs`: a and b are not null; `has_output`: c
// is not null.
template <ApiName Name, class Run>
mublasStatus_t gemm_ex(mublasHandle_t handle, const Arguments& given, bool has_inputs, bool has_output, Run run) {
  return call<Name>(handle, [&] {
    Product product;
    const mublasStatus_t status = prepare(
        given.transa, given.transb, given.m, given.n, given.k, given.atype, given.lda, given.btype, given.ldb,
        given.ctype, given.ldc, given.compute, given.batch, &product);
    if (status != MUBLAS_STATUS_SUCCESS || given.m == 0 || given.n == 0 || given.batch == 0) {
      return status;
    }
    if (given.alpha == nullptr || given.beta == nullptr || !has_output || (given.k > 0 && !has_inputs)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    const bool on_device = handle->pointer_mode == MUBLAS_POINTER_MODE_DEVICE;
    const at::ScalarType type = factor_type(given.compute, c10::isComplexType(product.c));
    return enqueue(
        handle, Name.text,
        [product, run, batch = given.batch, factor = Factor(on_device, given.alpha, type),
         kept = Factor(on_device, given.beta, type)] {
          const at::Scalar alpha = factor(), beta = kept();
          for (int i = 0; i < batch; ++i) {
            run(product, i, alpha, beta);
          }
        });
  });
}

} // namespace

mublasStatus_t mublasGemmEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, const void* b, musaDataType btype, int ldb, const void* beta, void* c,
    musaDataType ctype, int ldc, mublasComputeType_t compute, mublasGemmAlgo_t) {
  return gemm_ex<"mublasGemmEx">(
      handle, {transa, transb, m, n, k, alpha, beta, atype, btype, ctype, lda, ldb, ldc, compute, 1},
      a != nullptr && b != nullptr, c != nullptr,
      [=](const Product& product, int, const at::Scalar& factor, const at::Scalar& kept) {
        product(a, b, c, factor, kept);
      });
}

mublasStatus_t mublasGemmStridedBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, long long stridea, const void* b, musaDataType btype, int ldb,
    long long strideb, const void* beta, void* c, musaDataType ctype, int ldc, long long stridec, int batch,
    mublasComputeType_t compute, mublasGemmAlgo_t) {
  return gemm_ex<"mublasGemmStridedBatchedEx">(
      handle, {transa, transb, m, n, k, alpha, beta, atype, btype, ctype, lda, ldb, ldc, compute, batch},
      a != nullptr && b != nullptr, c != nullptr,
      [=](const Product& product, int i, const at::Scalar& factor, const at::Scalar& kept) {
        product(
            advance(a, product.a, stridea * i), advance(b, product.b, strideb * i),
            const_cast<void*>(advance(c, product.c, stridec * i)), factor, kept);
      });
}

mublasStatus_t mublasGemmBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* const a[], musaDataType atype, int lda, const void* const b[], musaDataType btype, int ldb,
    const void* beta, void* const c[], musaDataType ctype, int ldc, int batch, mublasComputeType_t compute,
    mublasGemmAlgo_t) {
  return gemm_ex<"mublasGemmBatchedEx">(
      handle, {transa, transb, m, n, k, alpha, beta, atype, btype, ctype, lda, ldb, ldc, compute, batch},
      a != nullptr && b != nullptr, c != nullptr,
      [=](const Product& product, int i, const at::Scalar& factor, const at::Scalar& kept) {
        product(a[i], b[i], c[i], factor, kept);
      });
}
