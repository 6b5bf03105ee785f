// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>

#include "engines/elements.h"
#include "engines/for_each.muh"
#include "engines/vector.h"
#include "kernels/TriangularOps.h"

namespace musa_ops_ported {
namespace {

void keep_triangle(const at::Tensor& self, int64_t diagonal, bool upper, const at::Tensor& out) {
  const int64_t rows = self.size(-2);
  const int64_t columns = self.size(-1);
  MUSA_BY_SIZE(self.element_size(), {
    const Bytes* const in = static_cast<const Bytes*>(self.const_data_ptr());
    Bytes* const to = elements_of<Bytes>(out, self);
    for_each_offset(
        self.sizes(),
        [=] __device__(int64_t i, const auto& at) {
          const int64_t above = i % columns - i / columns % rows; // distance above the main diagonal
          to[at[0]] = (upper ? above >= diagonal : above <= diagonal) ? in[at[1]] : Bytes{};
        },
        out.strides(), self.strides());
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
