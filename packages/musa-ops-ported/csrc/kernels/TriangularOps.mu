// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>

#include "engines/matrices.muh"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

template <typename Bytes>
struct Triangle {
  int64_t diagonal;
  bool upper;

  __device__ Bytes operator()(Bytes value, int64_t row, int64_t column) const {
    const bool kept = upper ? column - row >= diagonal : column - row <= diagonal;
    return kept ? value : Bytes{};
  }
};

void keep_triangle(const at::Tensor& self, int64_t diagonal, bool upper, const at::Tensor& out) {
  by_size(self.element_size(), [&](auto bytes) {
    using Bytes = decltype(bytes);
    over_matrices<Bytes>(self, out, Triangle<Bytes>{diagonal, upper});
  });
}

} // namespace

void tril(const at::Tensor& self, int64_t diagonal, const at::Tensor& out) {
  keep_triangle(self, diagonal, /*upper=*/false, out);
}

void triu(const at::Tensor& self, int64_t diagonal, const at::Tensor& out) {
  keep_triangle(self, diagonal, /*upper=*/true, out);
}

} // namespace musa_ops_ported
