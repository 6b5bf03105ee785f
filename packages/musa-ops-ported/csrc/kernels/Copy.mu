// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/TensorIterator.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e4m3fnuz.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Float8_e5m2fnuz.h>
#include <c10/util/complex.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/Copy.h"

namespace musa_ops_ported {
namespace {

#define MUSA_FLOAT8 AT_EXPAND(AT_FLOAT8_TYPES)
#define MUSA_CONVERTED_IN_PAIRS at::kFloat, MUSA_HALVES

#define MUSA_CONVERT_PAIR(ITER, TO, FROM)                                                    \
  MUSA_DISPATCH(ITER.dtype(0), "copy_on_device", TO, {                                       \
    using To = scalar_t;                                                                     \
    MUSA_DISPATCH(ITER.dtype(1), "copy_on_device", FROM, { convert<To, scalar_t>(ITER); });  \
  })

bool is_float8(at::ScalarType dtype) {
  return dtype == at::kFloat8_e4m3fn || dtype == at::kFloat8_e5m2 || dtype == at::kFloat8_e4m3fnuz ||
      dtype == at::kFloat8_e5m2fnuz;
}

bool converted_in_pairs(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16;
}

// What a load of any dtype can convert from.
bool convertible(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) || at::isComplexType(dtype) || converted_in_pairs(dtype) ||
      dtype == at::kDouble;
}

template <typename To, typename From>
void convert(at::TensorIteratorBase& iter) {
  pointwise(iter, [] __host__ __device__(From value) -> To { return static_cast<To>(value); });
}

template <typename T>
struct Resolve {
  bool conjugate, negate;

  __host__ __device__ T operator()(T value) const {
    if constexpr (c10::is_complex<T>::value) {
      value = conjugate ? T(value.real(), -value.imag()) : value;
    }
    if constexpr (!std::is_same_v<T, bool>) {
      value = negate ? static_cast<T>(-value) : value;
    }
    return value;
  }
};

// What mixed precision does all the time: kernels of their own, which load and store vectors.
void convert_pair(at::TensorIteratorBase& iter) {
  MUSA_CONVERT_PAIR(iter, (MUSA_CONVERTED_IN_PAIRS), (MUSA_CONVERTED_IN_PAIRS));
}

void to_float8(at::TensorIteratorBase& iter) {
  MUSA_CONVERT_PAIR(iter, (MUSA_FLOAT8), (MUSA_CONVERTED_IN_PAIRS));
}

void from_float8(at::TensorIteratorBase& iter) {
  MUSA_CONVERT_PAIR(iter, (MUSA_CONVERTED_IN_PAIRS), (MUSA_FLOAT8));
}

// The function is over the result's dtype; the load converts.
void convert_any(at::TensorIteratorBase& iter, bool conjugate, bool negate) {
  AT_DISPATCH_V2(iter.dtype(0), "copy_on_device", AT_WRAP([&] {
    pointwise(iter, Resolve<scalar_t>{conjugate, negate});
  }), MUSA_ALL, MUSA_UNSIGNED);
}

} // namespace

bool copy_on_device_served(const at::Tensor& self, const at::Tensor& src) {
  const at::ScalarType to = self.scalar_type(), from = src.scalar_type();
  const bool as_stored = to == from && self.is_conj() == src.is_conj() && self.is_neg() == src.is_neg();
  return as_stored || (convertible(to) && convertible(from)) || (is_float8(to) && converted_in_pairs(from)) ||
      (converted_in_pairs(to) && is_float8(from));
}

void copy_on_device(const at::Tensor& self, const at::Tensor& src) {
  at::TensorIterator iter = at::TensorIteratorConfig()
                                .add_output(self)
                                .add_const_input(src)
                                .resize_outputs(false)
                                .check_all_same_dtype(false)
                                .check_all_same_device(true)
                                .build();
  const at::ScalarType to = self.scalar_type(), from = src.scalar_type();
  const bool conjugate = self.is_conj() != src.is_conj(), negate = self.is_neg() != src.is_neg();
  if (!at::isComplexType(to) && at::isComplexType(from)) {
    TORCH_WARN_ONCE("A complex tensor is copied to ", to, ": its imaginary part is dropped.");
  }
  if (to == from && !conjugate && !negate) {
    MUSA_BY_SIZE(static_cast<int64_t>(self.element_size()), { convert<Bytes, Bytes>(iter); });
  } else if (is_float8(to)) {
    to_float8(iter);
  } else if (is_float8(from)) {
    from_float8(iter);
  } else if (converted_in_pairs(to) && converted_in_pairs(from) && !negate) {
    convert_pair(iter);
  } else {
    convert_any(iter, conjugate, negate);
  }
}

} // namespace musa_ops_ported
