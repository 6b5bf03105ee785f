// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Whether muDNN supports the operands of a call. Predicates read metadata only; if one returns false, the call goes to
// the next provider.
//
//   pack.impl("aten::mm", TORCH_FN(mm), TORCH_FN(mm_served));
//   bool mm_served(const at::Tensor& self, const at::Tensor& other) {
//     return serves<matrix_types>(self, other);
//   }
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include "support/settings.h"

namespace musa_ops_mudnn {

// Sets of dtypes.
using Dtypes = uint64_t;
constexpr Dtypes one(at::ScalarType dtype) { return Dtypes{1} << static_cast<int>(dtype); }
constexpr bool contains(Dtypes set, at::ScalarType dtype) { return (set & one(dtype)) != 0; }
inline constexpr Dtypes reduced_types = one(at::kHalf) | one(at::kBFloat16);
inline constexpr Dtypes float_types = reduced_types | one(at::kFloat) | one(at::kDouble);
inline constexpr Dtypes integer_types =
    one(at::kByte) | one(at::kChar) | one(at::kShort) | one(at::kInt) | one(at::kLong);
inline constexpr Dtypes bool_type = one(at::kBool);
inline constexpr Dtypes number_types = float_types | integer_types;
inline constexpr Dtypes all_types = number_types | bool_type;
// matmul of DOUBLE returns NOT_SUPPORTED.
inline constexpr Dtypes matrix_types = reduced_types | one(at::kFloat);

inline constexpr int64_t max_dims = 8;

// Tensors whose memory does not hold their values: conjugated and negated views, and zero tensors, which have no memory.
inline constexpr c10::DispatchKeySet lazy_values{
    c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor};

// Whether muDNN can describe and read the tensor: on the device, strided, not empty, at most 8 dimensions.
inline bool serves_tensor(const at::Tensor& tensor, Dtypes types) {
  return tensor.is_privateuseone() && tensor.layout() == at::kStrided && contains(types, tensor.scalar_type()) &&
      tensor.dim() <= max_dims && tensor.numel() > 0 && !tensor.key_set().has_any(lazy_values);
}

// Whether it is a number in the form of a 0-dim CPU tensor, which torch accepts together with device tensors.
inline bool is_cpu_number(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.dim() == 0 && !tensor.unsafeGetTensorImpl()->is_python_dispatch();
}

namespace detail {

// Whether each tensor argument is supported, and all are on one device. Other arguments are ignored.
template <Dtypes types, bool cpu_numbers>
struct Checker {
  c10::DeviceIndex device = -1;

  bool operator()(const at::Tensor& tensor) {
    if (cpu_numbers && is_cpu_number(tensor)) {
      return contains(all_types, tensor.scalar_type());
    }
    if (!serves_tensor(tensor, types) || (device >= 0 && tensor.device().index() != device)) {
      return false;
    }
    device = tensor.device().index();
    return true;
  }
  bool operator()(const std::optional<at::Tensor>& tensor) {
    return !tensor.has_value() || !tensor->defined() || (*this)(*tensor);
  }
  bool operator()(at::TensorList tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (!(*this)(tensor)) {
        return false;
      }
    }
    return true;
  }
  bool operator()(const at::ITensorListRef& tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (!(*this)(tensor)) {
        return false;
      }
    }
    return true;
  }
  template <typename T>
  bool operator()(const T& /*no tensor*/) {
    return true;
  }
};

} // namespace detail

// Whether all tensor arguments have one of `types` and are on one musa device.
template <Dtypes types, typename... Args>
bool serves(const Args&... args) {
  detail::Checker<types, false> check;
  return settings().enabled && (check(args) && ...);
}

// The same, but some of the tensors may be numbers.
template <Dtypes types, typename... Args>
bool serves_with_numbers(const Args&... args) {
  detail::Checker<types, true> check;
  return settings().enabled && (check(args) && ...) && check.device >= 0;
}

// Whether muDNN can write to out=. It may be empty; muDNN itself rejects an output with overlapping elements.
inline bool writable(const at::Tensor& out) {
  for (int64_t i = 0; i < out.dim(); ++i) {
    if (out.stride(i) == 0 && out.size(i) > 1) {
      return false;
    }
  }
  return out.is_privateuseone() && out.layout() == at::kStrided && contains(all_types, out.scalar_type());
}

// Predicates for the three overloads of a unary operator.
template <Dtypes types>
bool self_served(const at::Tensor& self) {
  return serves<types>(self);
}
template <Dtypes types>
bool out_served(const at::Tensor& self, at::Tensor& out) {
  return serves<types>(self) && writable(out);
}
template <Dtypes types>
bool in_place_served(at::Tensor& self) {
  return serves<types>(self);
}

} // namespace musa_ops_mudnn
