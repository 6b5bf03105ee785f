// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A matrix product with mixed types, used by mublasGemmEx, its batched variants and muBLASLt.
#pragma once

#include <optional>

#include "mublas/support.h"

namespace musa_emulator::blas {

// Returns nullopt if torch lacks the type.
std::optional<at::ScalarType> scalar_type(musaDataType type);

// The type of products and sums. 16-bit types are computed in float; sums of int8 in double, which is exact.
std::optional<at::ScalarType> compute_type(mublasComputeType_t compute, at::ScalarType result);

// alpha or beta with a type known at run time.
class Factor {
 public:
  Factor(bool on_device, const void* pointer, at::ScalarType type)
      : device_(on_device ? pointer : nullptr), type_(type), value_(on_device ? at::Scalar() : read(pointer, type)) {}
  at::Scalar operator()() const { return device_ != nullptr ? read(device_, type_) : value_; }

 private:
  static at::Scalar read(const void* pointer, at::ScalarType type);
  const void* device_;
  at::ScalarType type_;
  at::Scalar value_;
};

// op(a) is m x k, op(b) is k x n and c is m x n, each column-major.
struct Product {
  mublasOperation_t transa, transb;
  int64_t m, n, k;
  at::ScalarType a, b, c, compute;
  int64_t lda, ldb, ldc;

  // c = alpha * op(a) * op(b) + beta * c
  void operator()(
      const void* of_a, const void* of_b, void* of_c, const at::Scalar& alpha, const at::Scalar& beta) const;
  // Returns op(a) * op(b) in the compute type.
  at::Tensor compute_product(const void* of_a, const void* of_b) const;

 private:
  at::Tensor left(const void* of_a) const;
  at::Tensor right(const void* of_b) const;
};

// Returns the address of element `index`.
inline const void* advance(const void* data, at::ScalarType type, int64_t index) {
  return static_cast<const char*>(data) + static_cast<int64_t>(c10::elementSize(type)) * index;
}

// Fills `product`. Returns an error status if the arguments are invalid.
mublasStatus_t prepare(
    mublasOperation_t transa, mublasOperation_t transb, int64_t m, int64_t n, int64_t k, musaDataType atype,
    int64_t lda, musaDataType btype, int64_t ldb, musaDataType ctype, int64_t ldc, mublasComputeType_t compute,
    int64_t batch, Product* product);

} // namespace musa_emulator::blas
