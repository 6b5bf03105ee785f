// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Ternary functions over lists of tensors.
#include <ATen/native/Lerp.h>
#include <c10/util/complex.h>

#include "engines/dispatch.h"
#include "engines/tensor_lists.muh"
#include "kernels/ForeachPointwiseOp.h"
#include "kernels/foreach.h"

namespace musa_ops_ported {
namespace {

struct MultiplyAdd {
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T x, T y, T z, T factor) const {
    return x + factor * (y * z);
  }
};
struct DivideAdd {
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T x, T y, T z, T factor) const {
    return x + factor * (y / z);
  }
};
struct Interpolate {
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T begin, T end, T weight, T) const {
    return at::native::lerp(begin, end, weight);
  }
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T begin, T end, T weight) const {
    return at::native::lerp(begin, end, weight);
  }
};

template <typename F>
void with_lists(
    at::TensorList self, at::TensorList second, at::TensorList third, at::ArrayRef<at::Scalar> numbers,
    at::TensorList out) {
  MUSA_DISPATCH(self[0].scalar_type(), "foreach", (MUSA_REAL, AT_EXPAND(AT_COMPLEX_TYPES)), {
    over_lists<scalar_t>(F(), as<op_t>(numbers), out, self, second, third);
  });
}
void interpolate(at::TensorList self, at::TensorList end, at::ArrayRef<at::Scalar> weights, at::TensorList out) {
  MUSA_DISPATCH(self[0].scalar_type(), "foreach_lerp", (MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES)), {
    over_lists<scalar_t>(Interpolate(), as<op_t>(weights), out, self, end);
  });
}
void interpolate_by_lists(at::TensorList self, at::TensorList end, at::TensorList weights, at::TensorList out) {
  MUSA_DISPATCH(self[0].scalar_type(), "foreach_lerp", (MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES)), {
    over_lists<scalar_t>(Interpolate(), {}, out, self, end, weights);
  });
}

} // namespace

#define MUSA_LIST_OPERATOR(NAME, FUNCTION) \
  std::vector<at::Tensor> NAME##_Scalar( \
      at::TensorList self, at::TensorList tensor1, at::TensorList tensor2, const at::Scalar& value) { \
    std::vector<at::Tensor> out = like(self); \
    with_lists<FUNCTION>(self, tensor1, tensor2, value, out); \
    return out; \
  } \
  void NAME##__Scalar(at::TensorList self, at::TensorList tensor1, at::TensorList tensor2, const at::Scalar& value) { \
    with_lists<FUNCTION>(self, tensor1, tensor2, value, self); \
  } \
  std::vector<at::Tensor> NAME##_ScalarList( \
      at::TensorList self, at::TensorList tensor1, at::TensorList tensor2, at::ArrayRef<at::Scalar> scalars) { \
    std::vector<at::Tensor> out = like(self); \
    with_lists<FUNCTION>(self, tensor1, tensor2, scalars, out); \
    return out; \
  } \
  void NAME##__ScalarList( \
      at::TensorList self, at::TensorList tensor1, at::TensorList tensor2, at::ArrayRef<at::Scalar> scalars) { \
    with_lists<FUNCTION>(self, tensor1, tensor2, scalars, self); \
  }
MUSA_LIST_OPERATOR(_foreach_addcmul, MultiplyAdd)
MUSA_LIST_OPERATOR(_foreach_addcdiv, DivideAdd)

std::vector<at::Tensor> _foreach_lerp_Scalar(at::TensorList self, at::TensorList tensors1, const at::Scalar& weight) {
  std::vector<at::Tensor> out = like(self);
  interpolate(self, tensors1, weight, out);
  return out;
}
void _foreach_lerp__Scalar(at::TensorList self, at::TensorList tensors1, const at::Scalar& weight) {
  interpolate(self, tensors1, weight, self);
}
std::vector<at::Tensor> _foreach_lerp_ScalarList(
    at::TensorList self, at::TensorList tensors1, at::ArrayRef<at::Scalar> weight) {
  std::vector<at::Tensor> out = like(self);
  interpolate(self, tensors1, weight, out);
  return out;
}
void _foreach_lerp__ScalarList(at::TensorList self, at::TensorList tensors1, at::ArrayRef<at::Scalar> weight) {
  interpolate(self, tensors1, weight, self);
}
std::vector<at::Tensor> _foreach_lerp_List(at::TensorList self, at::TensorList tensors1, at::TensorList weights) {
  std::vector<at::Tensor> out = like(self);
  interpolate_by_lists(self, tensors1, weights, out);
  return out;
}
void _foreach_lerp__List(at::TensorList self, at::TensorList tensors1, at::TensorList weights) {
  interpolate_by_lists(self, tensors1, weights, self);
}

} // namespace musa_ops_ported
