// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Reductions of segments along a dimension, and their gradients. One thread reduces a segment sequentially in its own
// dtype, as torch's CPU kernel does, so that results are equal.
#include <ATen/core/Tensor.h>
#include <ATen/native/SegmentReduce.h>

#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"

namespace musa_ops_ported {
namespace {

using at::native::ReductionType;

// Contiguous data of shape (outer, axis, inner) and offsets of shape (outer, segments + 1).
struct Segments {
  const int64_t* offsets;
  int64_t segments, axis, inner;

  __device__ int64_t outer_of(int64_t output) const { return output / inner / segments; }
  __device__ int64_t bound(int64_t output, int64_t which) const {
    return offsets[outer_of(output) * (segments + 1) + output / inner % segments + which];
  }
  // The offset of the data at a position along the axis.
  __device__ int64_t element(int64_t output, int64_t place) const {
    return (outer_of(output) * axis + place) * inner + output % inner;
  }
};

Segments segments_of(const at::Tensor& data, const at::Tensor& offsets, int64_t axis) {
  return {
      offsets.const_data_ptr<int64_t>(), offsets.size(-1) - 1, data.size(axis),
      c10::multiply_integers(data.sizes().slice(axis + 1))};
}

at::Tensor offsets_of_lengths(const at::Tensor& lengths) {
  const at::Tensor sums = lengths.to(at::kLong).cumsum(-1);
  at::DimVector shape(lengths.sizes());
  shape.back() += 1;
  const at::Tensor offsets = aten::zeros(shape, sums.options());
  offsets.narrow(-1, 1, lengths.size(-1)).copy_(sums);
  return offsets;
}

double identity(ReductionType reduction) {
  switch (reduction) {
    case ReductionType::MAX: return -std::numeric_limits<double>::infinity();
    case ReductionType::MIN: return std::numeric_limits<double>::infinity();
    case ReductionType::PROD: return 1;
    default: return 0;
  }
}

template <typename T>
__device__ C10_ALWAYS_INLINE T reduced(ReductionType reduction, T so_far, T x) {
  switch (reduction) {
    case ReductionType::MAX: return x != x || so_far < x ? x : so_far;
    case ReductionType::MIN: return x != x || x < so_far ? x : so_far;
    case ReductionType::PROD: return so_far * x;
    default: return so_far + x;
  }
}

template <typename T>
void reduce_segments(
    ReductionType reduction, const at::Tensor& data, const Segments& segments, const std::optional<at::Scalar>& initial,
    const at::Tensor& output) {
  const T* const in = data.const_data_ptr<T>();
  T* const out = output.mutable_data_ptr<T>();
  const T first = initial.has_value() ? initial->to<T>() : static_cast<T>(identity(reduction));
  const bool has_initial = initial.has_value();
  for_each(output.numel(), [=] __device__(int64_t i) {
    const int64_t begin = segments.bound(i, 0), end = segments.bound(i, 1);
    T result = first;
    for (int64_t place = begin; place < end; ++place) {
      result = reduced(reduction, result, in[segments.element(i, place)]);
    }
    if (reduction == ReductionType::MEAN) {
      if (begin == end && !has_initial) {
        result = std::numeric_limits<T>::quiet_NaN();
      } else if (begin < end && result == result) {
        result = result / static_cast<T>(end - begin);
      }
    }
    out[i] = result;
  });
}

at::Tensor reduce_offsets(
    ReductionType reduction, const at::Tensor& data, const at::Tensor& offsets, int64_t axis,
    const std::optional<at::Scalar>& initial) {
  at::DimVector shape(data.sizes());
  shape[axis] = offsets.size(-1) - 1;
  const at::Tensor output = aten::empty(shape, data.options());
  const at::Tensor bounds = offsets.to(at::kLong);
  MUSA_DISPATCH(data.scalar_type(), "_segment_reduce", (MUSA_FLOATING), {
    reduce_segments<scalar_t>(reduction, data, segments_of(data, bounds, axis), initial, output);
  });
  return output;
}
at::Tensor reduce_lengths(
    ReductionType reduction, const at::Tensor& data, const at::Tensor& lengths, int64_t axis,
    const std::optional<at::Scalar>& initial) {
  return reduce_offsets(reduction, data, offsets_of_lengths(lengths), axis, initial);
}

template <typename T>
void spread_gradient(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data, ReductionType reduction,
    const Segments& segments, const std::optional<at::Scalar>& initial, const at::Tensor& result) {
  const T* const gradients = grad.const_data_ptr<T>();
  const T* const outputs = output.const_data_ptr<T>();
  const T* const in = data.const_data_ptr<T>();
  T* const to = result.mutable_data_ptr<T>();
  const T first = initial.has_value() ? initial->to<T>() : T(1);
  for_each(output.numel(), [=] __device__(int64_t i) {
    const int64_t begin = segments.bound(i, 0), end = segments.bound(i, 1);
    const T gradient = gradients[i];
    if (reduction == ReductionType::MAX || reduction == ReductionType::MIN) {
      int64_t count = 0;
      for (int64_t place = begin; place < end; ++place) {
        const T x = in[segments.element(i, place)];
        count += x != x || x == outputs[i];
      }
      // torch divides only positive gradients among equal elements.
      const T share = count > 1 && gradient > T(0) ? gradient / static_cast<T>(count) : gradient;
      for (int64_t place = begin; place < end; ++place) {
        const int64_t at = segments.element(i, place);
        if (in[at] != in[at] || in[at] == outputs[i]) {
          to[at] = share;
        }
      }
      return;
    }
    const T share = reduction == ReductionType::MEAN && begin < end ? gradient / static_cast<T>(end - begin)
        : reduction == ReductionType::PROD                          ? gradient * outputs[i]
                                                                    : gradient;
    for (int64_t place = begin; place < end; ++place) {
      const int64_t at = segments.element(i, place);
      if (reduction != ReductionType::PROD) {
        to[at] = share;
      } else if (in[at] != in[at] || in[at] == T(0)) {
        T others = first;
        for (int64_t other = begin; other < end; ++other) {
          others = other == place ? others : others * in[segments.element(i, other)];
        }
        to[at] = gradient * others;
      } else {
        to[at] = share / in[at];
      }
    }
  });
}

at::Tensor offsets_backward(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data, ReductionType reduction,
    const at::Tensor& offsets, int64_t axis, const std::optional<at::Scalar>& initial) {
  const at::Tensor result = aten::zeros(data.sizes(), grad.options());
  const at::Tensor bounds = offsets.to(at::kLong);
  MUSA_DISPATCH(data.scalar_type(), "_segment_reduce_backward", (MUSA_FLOATING), {
    spread_gradient<scalar_t>(grad, output, data, reduction, segments_of(data, bounds, axis), initial, result);
  });
  return result;
}
at::Tensor lengths_backward(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data, ReductionType reduction,
    const at::Tensor& lengths, int64_t axis, const std::optional<at::Scalar>& initial) {
  return offsets_backward(grad, output, data, reduction, offsets_of_lengths(lengths), axis, initial);
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_lengths_stub, &musa_ops_ported::reduce_lengths)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_offsets_stub, &musa_ops_ported::reduce_offsets)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_lengths_backward_stub, &musa_ops_ported::lengths_backward)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_offsets_backward_stub, &musa_ops_ported::offsets_backward)
} // namespace at::native
