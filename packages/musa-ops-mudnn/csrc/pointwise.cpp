// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Functions of one tensor, element by element.
#include <ATen/ops/acos_meta.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/add_meta.h>

#include "families.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

template <UnaryMode mode>
void unary(at::TensorIteratorBase& iter, const at::Tensor& self, const at::Tensor& out) {
  const at::ScalarType dtype = iter.common_dtype();
  write_as(dtype, out, [&](const at::Tensor& result) { run_unary(mode, result, in_dtype(self, dtype)); });
}

void add(
    at::TensorIteratorBase& iter, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
    const at::Tensor& out) {
  const at::ScalarType dtype = iter.common_dtype();
  write_as(dtype, out, [&](const at::Tensor& result) {
    if (is_cpu_number(other)) {
      run_unary(UnaryMode::ADD, result, in_dtype(self, dtype), number_in(other));
    } else {
      run_binary(BinaryMode::ADD_ALPHA, result, in_dtype(self, dtype), in_dtype(other, dtype), alpha);
    }
  });
}

} // namespace

void declare_pointwise(OpPack& pack) {
  structured<at::meta::structured_acos, unary<UnaryMode::ACOS>, takes<all_types>>(pack, {"aten::acos", "aten::acos.out", "aten::acos_"});
  structured<at::meta::structured_cos, unary<UnaryMode::COS>, takes<all_types>>(pack, {"aten::cos", "aten::cos.out", "aten::cos_"});
  structured<at::meta::structured_sin, unary<UnaryMode::SIN>, takes<all_types>>(pack, {"aten::sin", "aten::sin.out", "aten::sin_"});
  structured<at::meta::structured_add_Tensor, add, takes_numbers<all_types>>(pack, {"aten::add.Tensor", "aten::add.out", "aten::add_.Tensor"});
}

} // namespace musa_ops_mudnn
