// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/AccumulateType.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Fill.h>
#include <ATen/native/RangeFactories.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/TensorFactories.h>
#include <c10/util/complex.h>

#include <cstring>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/pointwise.muh"
#include "kernels/RangeFactories.h"

namespace musa_ops_ported {
namespace {

// float8 dtypes: the value is converted on the host and stored as bytes.
void fill_float8(at::TensorIterator& iter, const at::Scalar& value) {
  Opaque<1> filler;
  AT_DISPATCH_V2(
      iter.dtype(), "fill", AT_WRAP([&] {
        const auto number = value.to<scalar_t>();
        static_assert(sizeof(number) == sizeof(filler));
        std::memcpy(&filler, &number, sizeof(filler));
      }),
      AT_EXPAND(AT_FLOAT8_TYPES));
  pointwise(iter, [filler] __host__ __device__() -> Opaque<1> { return filler; });
}

void fill(at::TensorIterator& iter, const at::Scalar& value) {
  if (at::isFloat8Type(iter.dtype())) {
    fill_float8(iter, value);
    return;
  }
  MUSA_DISPATCH(iter.dtype(), "fill", (MUSA_ALL, MUSA_UNSIGNED), {
    const auto filler = value.to<scalar_t>();
    pointwise(iter, [filler] __host__ __device__() -> scalar_t { return filler; });
  });
}

// Writes out[i] = f(i), for any strides of `out`.
template <typename T, typename F>
void write_range(const at::Tensor& out, const F& f) {
  at::assert_no_internal_overlap(out);
  T* const to = out.mutable_data_ptr<T>();
  for_each_offset(out.sizes(), [=] __device__(int64_t i, const auto& at) { to[at[0]] = f(i); }, out.strides());
}

} // namespace

at::Tensor& arange_start_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  MUSA_DISPATCH(out.scalar_type(), "arange", (MUSA_REAL), {
    using wide_t = at::acc_type<scalar_t, /*is_cuda=*/false>;
    const auto first = start.to<wide_t>();
    const auto stride = step.to<wide_t>();
    const int64_t count = at::native::compute_arange_size<scalar_t>(start, end, step);
    if (out.numel() != count) {
      aten::resize_output(out, {count});
    }
    write_range<scalar_t>(
        out, [=] __device__(int64_t i) { return static_cast<scalar_t>(first + stride * static_cast<wide_t>(i)); });
  });
  return out;
}

at::Tensor& range_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  MUSA_DISPATCH(out.scalar_type(), "range", (MUSA_REAL), {
    using wide_t = at::acc_type<scalar_t, /*is_cuda=*/false>;
    const auto first = start.to<wide_t>();
    const auto last = end.to<wide_t>();
    const auto stride = step.to<wide_t>();
    TORCH_CHECK(stride != 0, "step must be nonzero");
    TORCH_CHECK(
        std::isfinite(static_cast<double>(first)) && std::isfinite(static_cast<double>(last)),
        "unsupported range: ", first, " -> ", last);
    TORCH_CHECK(stride > 0 ? last >= first : last <= first, "upper bound and lower bound inconsistent with step sign");
    const auto count = static_cast<int64_t>(
        (static_cast<double>(last) - static_cast<double>(first)) / static_cast<double>(stride) + 1);
    if (out.numel() != count) {
      aten::resize_output(out, {count});
    }
    write_range<scalar_t>(
        out, [=] __device__(int64_t i) { return static_cast<scalar_t>(first + stride * static_cast<wide_t>(i)); });
  });
  return out;
}

namespace {

// Interpolates from both ends, so that the last value is exact. Half types round at each step, as in torch.
template <typename T>
struct Line {
  T first, last, step;
  int64_t steps;

  Line(T from, T to, int64_t count)
      : first(from), last(to), step(count > 1 ? static_cast<T>((to - from) / number(count - 1)) : T(0)), steps(count) {}
  C10_HOST_DEVICE static T number(int64_t i) { return static_cast<T>(static_cast<double>(i)); }
  C10_HOST_DEVICE T operator()(int64_t i) const {
    return i < steps / 2 || steps == 1 ? first + step * number(i) : last - step * number(steps - i - 1);
  }
};

// Integral dtypes use double, because a float slightly below an integer would be truncated to the previous integer.
template <typename T, typename Other>
using OnLine = std::conditional_t<std::is_integral_v<T>, double, Other>;

} // namespace

at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) {
    aten::resize_output(out, {steps});
  }
  if (steps == 0) {
    return out;
  }
  MUSA_DISPATCH(out.scalar_type(), "linspace", (MUSA_REAL, AT_EXPAND(AT_COMPLEX_TYPES)), {
    using number_t = OnLine<scalar_t, scalar_t>;
    const Line<number_t> line(
        static_cast<number_t>(start.to<scalar_t>()), static_cast<number_t>(end.to<scalar_t>()), steps);
    write_range<scalar_t>(out, [=] __device__(int64_t i) { return static_cast<scalar_t>(line(i)); });
  });
  return out;
}

at::Tensor& logspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) {
    aten::resize_output(out, {steps});
  }
  if (steps == 0) {
    return out;
  }
  if (steps == 1 && !start.isComplex()) {
    return out.fill_(std::pow(base, start.to<double>())); // `start` is not rounded to the output's dtype
  }
  MUSA_DISPATCH(out.scalar_type(), "logspace", (MUSA_REAL, AT_EXPAND(AT_COMPLEX_TYPES)), {
    using number_t = OnLine<scalar_t, op_t>; // exponents keep full precision
    const auto ground = static_cast<number_t>(base);
    const Line<number_t> line(
        static_cast<number_t>(start.to<scalar_t>()), static_cast<number_t>(end.to<scalar_t>()), steps);
    write_range<scalar_t>(out, [=] __device__(int64_t i) { return static_cast<scalar_t>(std::pow(ground, line(i))); });
  });
  return out;
}

at::Tensor& eye_m_out(int64_t n, int64_t m, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  out.resize_({n, m});
  MUSA_DISPATCH(out.scalar_type(), "eye", (MUSA_ALL, AT_EXPAND(AT_FLOAT8_TYPES)), {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    for_each_offset(
        out.sizes(),
        [=] __device__(int64_t i, const auto& at) {
          to[at[0]] = static_cast<scalar_t>(static_cast<float>(i / m == i % m));
        },
        out.strides());
  });
  return out;
}
at::Tensor& eye_out(int64_t n, at::Tensor& out) { return eye_m_out(n, n, out); }

namespace {

// (row, column) pairs of a triangle, row by row.
at::Tensor triangle_indices(
    int64_t rows, int64_t columns, int64_t offset, bool upper, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin) {
  at::native::check_args(rows, columns, layout);
  const int64_t below = at::native::get_tril_size(rows, columns, upper ? offset - 1 : offset);
  const int64_t count = upper ? rows * columns - below : below;
  const at::Tensor out = aten::empty(
      {2, count},
      at::TensorOptions().dtype(dtype.value_or(at::kLong)).layout(layout).device(device).pinned_memory(pin));
  MUSA_DISPATCH(out.scalar_type(), "triangle_indices", (MUSA_INTEGRAL), {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    // One thread writes a row; its start is the number of elements in the rows above, in closed form.
    for_each(rows, [=] __device__(int64_t row) {
      // Elements of the lower triangle in the rows above: first rows of growing length, then full rows.
      const int64_t edge = upper ? offset - 1 : offset;
      const auto lower_before = [&](int64_t r) {
        const int64_t empty = edge < -1 ? -edge - 1 : 0; // rows without elements
        const int64_t growing_end = columns - edge - 1 < 0 ? 0 : columns - edge - 1; // rows from here on are full
        const int64_t begin = empty < r ? empty : r;
        const int64_t stop = growing_end < begin ? begin : growing_end < r ? growing_end : r;
        const int64_t n = stop - begin;
        const int64_t first = begin + edge + 1 < 0 ? 0 : begin + edge + 1;
        return n * first + n * (n - 1) / 2 + (r - stop) * columns;
      };
      const int64_t before = upper ? row * columns - lower_before(row) : lower_before(row);
      const int64_t split = row + edge + 1 < 0 ? 0 : row + edge + 1 > columns ? columns : row + edge + 1;
      const int64_t from = upper ? split : 0;
      const int64_t until = upper ? columns : split;
      for (int64_t column = from; column < until; ++column) {
        to[before + column - from] = static_cast<scalar_t>(row);
        to[count + before + column - from] = static_cast<scalar_t>(column);
      }
    });
  });
  return out;
}

} // namespace

at::Tensor tril_indices(
    int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return triangle_indices(row, col, offset, /*upper=*/false, dtype, layout, device, pin_memory);
}
at::Tensor triu_indices(
    int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return triangle_indices(row, col, offset, /*upper=*/true, dtype, layout, device, pin_memory);
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(fill_stub, &musa_ops_ported::fill)
} // namespace at::native
