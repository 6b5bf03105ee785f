// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/TensorIterator.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e4m3fnuz.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Float8_e5m2fnuz.h>
#include <c10/util/complex.h>

#include <limits>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "engines/rows.muh"
#include "kernels/Copy.h"

namespace musa_ops_ported {
namespace {

#define MUSA_FLOAT8 AT_EXPAND(AT_FLOAT8_TYPES)
#define MUSA_CONVERTED_IN_PAIRS at::kFloat, MUSA_HALVES

#define MUSA_CONVERT_PAIR(ITER, TO, FROM) \
  MUSA_DISPATCH(ITER.dtype(0), "copy_on_device", TO, { \
    using To = scalar_t; \
    MUSA_DISPATCH(ITER.dtype(1), "copy_on_device", FROM, { convert<To, scalar_t>(ITER); }); \
  })

bool is_float8(at::ScalarType dtype) {
  return dtype == at::kFloat8_e4m3fn || dtype == at::kFloat8_e5m2 || dtype == at::kFloat8_e4m3fnuz ||
      dtype == at::kFloat8_e5m2fnuz;
}

bool converted_in_pairs(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16;
}

// Whether load_as can convert from this dtype.
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

// Conversions between floating dtypes are frequent in mixed precision, so they have kernels with vector loads and
// stores.
void convert_pair(at::TensorIteratorBase& iter) {
  MUSA_CONVERT_PAIR(iter, (MUSA_CONVERTED_IN_PAIRS), (MUSA_CONVERTED_IN_PAIRS));
}

void to_float8(at::TensorIteratorBase& iter) { MUSA_CONVERT_PAIR(iter, (MUSA_FLOAT8), (MUSA_CONVERTED_IN_PAIRS)); }

void from_float8(at::TensorIteratorBase& iter) { MUSA_CONVERT_PAIR(iter, (MUSA_CONVERTED_IN_PAIRS), (MUSA_FLOAT8)); }

// The function is compiled for the result's dtype only; the load converts.
void convert_any(at::TensorIteratorBase& iter, bool conjugate, bool negate) {
  AT_DISPATCH_V2(
      iter.dtype(0), "copy_on_device", AT_WRAP([&] { pointwise(iter, Resolve<scalar_t>{conjugate, negate}); }),
      MUSA_ALL, MUSA_UNSIGNED);
}

// A copy whose source and result have different innermost dimensions. Tiles in shared memory make both the reads and
// the writes of a warp adjacent. Sizes and strides are in elements, starting with the result's innermost dimension.
constexpr int kTile = 32, kTileRows = 8;

struct TransposedCopy {
  int64_t size[3] = {1, 1, 1}, to[3] = {0, 0, 0}, from[3] = {0, 0, 0};

  uint32_t tiles(int d) const { return static_cast<uint32_t>((size[d] + kTile - 1) / kTile); }

  // Returns whether the iterator is such a copy and large enough to fill tiles; then stores its sizes and strides.
  bool take(const at::TensorIteratorBase& iter) {
    if (iter.numel() == 0 || iter.ndim() < 2 || iter.ndim() > 3) {
      return false;
    }
    const int64_t element = iter.element_size(0);
    for (int d = 0; d < iter.ndim(); ++d) {
      size[d] = iter.shape()[d];
      to[d] = iter.strides(0)[d] / element;
      from[d] = iter.strides(1)[d] / element;
    }
    return to[0] == 1 && from[1] == 1 && from[0] >= kTile && to[1] >= kTile && size[0] >= kTile && size[1] >= kTile &&
        int64_t{tiles(0)} * tiles(1) * size[2] <= std::numeric_limits<int32_t>::max();
  }
};

template <typename T>
__global__ void C10_LAUNCH_BOUNDS_1(kTile* kTileRows)
    copy_tiles(T* const out, const T* const in, const TransposedCopy of, const uint32_t across, const uint32_t down) {
  __shared__ T tile[kTile][kTile + 1]; // padded by one, so that a column spans different banks
  const int lane = threadIdx.x % kTile, row = threadIdx.x / kTile;
  const uint32_t line = blockIdx.x / across, batch = line / down;
  const int64_t x = int64_t{blockIdx.x - line * across} * kTile, y = int64_t{line - batch * down} * kTile;
  const T* const from = in + batch * of.from[2] + x * of.from[0] + y;
  T* const to = out + batch * of.to[2] + y * of.to[1] + x;
#pragma unroll
  for (int k = 0; k < kTile; k += kTileRows) {
    const int i = row + k;
    if (x + i < of.size[0] && y + lane < of.size[1]) {
      tile[i][lane] = from[i * of.from[0] + lane];
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kTile; k += kTileRows) {
    const int i = row + k;
    if (y + i < of.size[1] && x + lane < of.size[0]) {
      to[i * of.to[1] + lane] = tile[lane][i];
    }
  }
}

// Copies without conversion.
void copy_as_stored(at::TensorIteratorBase& iter) {
  TransposedCopy of;
  if (!of.take(iter)) {
    MUSA_BY_SIZE(static_cast<int64_t>(iter.element_size(0)), { convert<Bytes, Bytes>(iter); });
    return;
  }
  const uint32_t blocks = of.tiles(0) * of.tiles(1) * static_cast<uint32_t>(of.size[2]);
  MUSA_BY_SIZE(static_cast<int64_t>(iter.element_size(0)), {
    copy_tiles<Bytes><<<blocks, kTile * kTileRows, 0, c10::musa::getCurrentMUSAStream()>>>(
        static_cast<Bytes*>(iter.data_ptr(0)), static_cast<const Bytes*>(iter.data_ptr(1)), of, of.tiles(0),
        of.tiles(1));
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  });
}

} // namespace

bool copy_on_device_served(const at::Tensor& self, const at::Tensor& src) {
  const at::ScalarType to = self.scalar_type(), from = src.scalar_type();
  const bool as_stored = to == from && self.is_conj() == src.is_conj() && self.is_neg() == src.is_neg();
  // The load converts before the kernel negates, and the conversion of a negative number to an unsigned one is undefined.
  if (to != from && self.is_neg() != src.is_neg() && at::isIntegralType(to, /*includeBool=*/false) &&
      !at::isSignedType(to)) {
    return false;
  }
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
    TORCH_WARN_ONCE("Copying a complex tensor to ", to, " discards its imaginary part.");
  }
  if (to == from && !conjugate && !negate) {
    copy_as_stored(iter);
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
