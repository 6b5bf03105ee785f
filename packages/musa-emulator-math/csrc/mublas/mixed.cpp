// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Products of matrices of several types.
#include <optional>

#include "mublas/support.h"

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

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

// What the product is computed in. Sums of 16-bit numbers are float's; those of bytes are exact in double.
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

// alpha or beta, of the type that the computation has, as the task reads it.
class Factor {
 public:
  Factor(mublasHandle_t handle, const void* pointer, mublasComputeType_t compute, bool complex)
      : compute_(compute),
        complex_(complex),
        half_(handle, compute == MUBLAS_COMPUTE_16F ? pointer : nullptr),
        integer_(handle, compute == MUBLAS_COMPUTE_32I ? pointer : nullptr),
        float_(handle, is_float() && !complex ? pointer : nullptr),
        double_(handle, compute == MUBLAS_COMPUTE_64F && !complex ? pointer : nullptr),
        complex_float_(handle, is_float() && complex ? pointer : nullptr),
        complex_double_(handle, compute == MUBLAS_COMPUTE_64F && complex ? pointer : nullptr) {}
  at::Scalar operator()() const {
    switch (compute_) {
      case MUBLAS_COMPUTE_16F: return static_cast<double>(half_());
      case MUBLAS_COMPUTE_32I: return static_cast<double>(integer_());
      case MUBLAS_COMPUTE_64F: return complex_ ? at::Scalar(complex_double_()) : at::Scalar(double_());
      default: return complex_ ? at::Scalar(complex_float_()) : at::Scalar(float_());
    }
  }

 private:
  bool is_float() const {
    return compute_ == MUBLAS_COMPUTE_32F || compute_ == MUBLAS_COMPUTE_32F_FAST_16F ||
        compute_ == MUBLAS_COMPUTE_32F_FAST_TF32;
  }
  mublasComputeType_t compute_;
  bool complex_;
  Scalar<at::Half> half_;
  Scalar<int> integer_;
  Scalar<float> float_;
  Scalar<double> double_;
  Scalar<c10::complex<float>> complex_float_;
  Scalar<c10::complex<double>> complex_double_;
};

struct Product {
  mublasOperation_t transa, transb;
  int m, n, k;
  at::ScalarType a, b, c, compute;
  int lda, ldb, ldc;

  void operator()(const void* of_a, const void* of_b, void* of_c, const at::Scalar& alpha, const at::Scalar& beta) const {
    const auto operand = [&](const void* data, mublasOperation_t trans, int rows, int columns, int ld, at::ScalarType type) {
      const at::Tensor stored = trans == MUBLAS_OP_N ? matrix(data, rows, columns, ld, type) : matrix(data, columns, rows, ld, type);
      return transposed(stored.to(compute), trans);
    };
    const at::Tensor left = operand(of_a, transa, m, k, lda, a), right = operand(of_b, transb, k, n, ldb, b);
    const at::Tensor result = matrix(of_c, m, n, ldc, c);
    if (c == compute) {
      multiply(result, left, right, alpha, beta);
      return;
    }
    at::Tensor sum = at::mm(left, right).to(compute) * alpha;
    if (!beta.equal(0)) {
      sum = sum + result.to(compute) * beta;
    }
    result.copy_(sum);
  }
};

bool complete(const void* alpha, const void* beta, const void* a, const void* b, const void* c, int k) {
  return alpha != nullptr && beta != nullptr && c != nullptr && (k == 0 || (a != nullptr && b != nullptr));
}

mublasStatus_t prepare(
    mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, musaDataType atype, int lda,
    musaDataType btype, int ldb, musaDataType ctype, int ldc, mublasComputeType_t compute, int batch, Product* product) {
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

} // namespace

mublasStatus_t mublasGemmEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, const void* b, musaDataType btype, int ldb, const void* beta, void* c,
    musaDataType ctype, int ldc, mublasComputeType_t compute, mublasGemmAlgo_t algo) {
  return call<"mublasGemmEx">(handle, [&] {
    (void)algo;
    Product product;
    const mublasStatus_t status =
        prepare(transa, transb, m, n, k, atype, lda, btype, ldb, ctype, ldc, compute, 1, &product);
    if (status != MUBLAS_STATUS_SUCCESS || m == 0 || n == 0) {
      return status;
    }
    if (!complete(alpha, beta, a, b, c, k)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    const bool complex = c10::isComplexType(product.c);
    return enqueue(
        handle, "mublasGemmEx",
        [=, factor = Factor(handle, alpha, compute, complex), kept = Factor(handle, beta, compute, complex)] {
          product(a, b, c, factor(), kept());
        });
  });
}

mublasStatus_t mublasGemmStridedBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, long long stridea, const void* b, musaDataType btype, int ldb,
    long long strideb, const void* beta, void* c, musaDataType ctype, int ldc, long long stridec, int batch,
    mublasComputeType_t compute, mublasGemmAlgo_t algo) {
  return call<"mublasGemmStridedBatchedEx">(handle, [&] {
    (void)algo;
    Product product;
    const mublasStatus_t status =
        prepare(transa, transb, m, n, k, atype, lda, btype, ldb, ctype, ldc, compute, batch, &product);
    if (status != MUBLAS_STATUS_SUCCESS || m == 0 || n == 0 || batch == 0) {
      return status;
    }
    if (!complete(alpha, beta, a, b, c, k)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    const bool complex = c10::isComplexType(product.c);
    return enqueue(
        handle, "mublasGemmStridedBatchedEx",
        [=, factor = Factor(handle, alpha, compute, complex), kept = Factor(handle, beta, compute, complex)] {
          const auto at_index = [](const void* data, at::ScalarType type, long long stride, int i) {
            return static_cast<const char*>(data) + static_cast<long long>(c10::elementSize(type)) * stride * i;
          };
          for (int i = 0; i < batch; ++i) {
            product(
                at_index(a, product.a, stridea, i), at_index(b, product.b, strideb, i),
                const_cast<char*>(at_index(c, product.c, stridec, i)), factor(), kept());
          }
        });
  });
}

mublasStatus_t mublasGemmBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* const a[], musaDataType atype, int lda, const void* const b[], musaDataType btype, int ldb,
    const void* beta, void* const c[], musaDataType ctype, int ldc, int batch, mublasComputeType_t compute,
    mublasGemmAlgo_t algo) {
  return call<"mublasGemmBatchedEx">(handle, [&] {
    (void)algo;
    Product product;
    const mublasStatus_t status =
        prepare(transa, transb, m, n, k, atype, lda, btype, ldb, ctype, ldc, compute, batch, &product);
    if (status != MUBLAS_STATUS_SUCCESS || m == 0 || n == 0 || batch == 0) {
      return status;
    }
    if (!complete(alpha, beta, a, b, c, k)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    const bool complex = c10::isComplexType(product.c);
    return enqueue(
        handle, "mublasGemmBatchedEx",
        [=, factor = Factor(handle, alpha, compute, complex), kept = Factor(handle, beta, compute, complex)] {
          for (int i = 0; i < batch; ++i) {
            product(a[i], b[i], c[i], factor(), kept());
          }
        });
  });
}
