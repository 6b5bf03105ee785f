// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Embedding bags: the rows of the weight that a list of indices selects are reduced to one row per list.
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/optional.h"
#include "engines/rows.muh"
#include "kernels/EmbeddingBag.h"
#include "segments.muh"

namespace musa_ops_ported {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// Returns the bag of each position: the last bag that begins at or before it.
at::Tensor bags_of_places(const at::Tensor& offsets, int64_t count, int64_t begun) {
  const at::Tensor result = aten::empty({count}, offsets.options());
  const int64_t* const begins = offsets.const_data_ptr<int64_t>();
  int64_t* const to = result.mutable_data_ptr<int64_t>();
  for_each(count, [=] __device__(int64_t i) { to[i] = first_place(begins, begun, i, /*after=*/true) - 1; });
  return result;
}

struct Bags {
  const int64_t* indices;
  const int64_t* begins;
  int64_t places, bags, offsets, padding, rows;

  __device__ int64_t begin(int64_t bag) const { return begins[bag]; }
  // If there is one offset more than bags, positions from that offset on belong to no bag. For mode max they belong
  // to the last bag, as in torch's CPU kernel.
  __device__ int64_t end(int64_t bag) const { return bag + 1 < offsets ? begins[bag + 1] : places; }
  // Calls f(place, row) for each index of a bag, except the padding index.
  template <typename F>
  __device__ void each(int64_t bag, const F& f) const {
    for (int64_t place = begin(bag); place < end(bag); ++place) {
      const int64_t row = indices[place];
      CUDA_KERNEL_ASSERT(row >= 0 && row < rows && "index out of range of the embedding");
      if (row != padding) {
        f(place, row);
      }
    }
  }
};

void count_bags(const Bags& bags, const at::Tensor& sizes) {
  int64_t* const to = sizes.mutable_data_ptr<int64_t>();
  for_each(bags.bags, [=] __device__(int64_t bag) {
    int64_t count = 0;
    bags.each(bag, [&](int64_t, int64_t) { ++count; });
    to[bag] = count;
  });
}

template <typename T>
void sums(const Bags& bags, const at::Tensor& weight, const at::Tensor& factors, bool mean, const at::Tensor& out) {
  using Real = at::opmath_type<T>;
  const int64_t width = weight.size(1), row_step = weight.stride(0), column_step = weight.stride(1);
  const T* const in = weight.const_data_ptr<T>();
  const T* const factor = data_or_null<T>(factors);
  T* const to = out.mutable_data_ptr<T>();
  for_each(out.numel(), [=] __device__(int64_t i) {
    const int64_t column = i % width;
    Real sum = 0;
    int64_t count = 0;
    bags.each(i / width, [&](int64_t place, int64_t row) {
      const Real x = static_cast<Real>(in[row * row_step + column * column_step]);
      sum += factor != nullptr ? x * static_cast<Real>(factor[place]) : x;
      ++count;
    });
    to[i] = static_cast<T>(mean && count > 0 ? sum / static_cast<Real>(count) : sum);
  });
}

template <typename T>
void maxima(const Bags& bags, const at::Tensor& weight, const at::Tensor& out, const at::Tensor& winners) {
  const int64_t width = weight.size(1), row_step = weight.stride(0), column_step = weight.stride(1);
  const T* const in = weight.const_data_ptr<T>();
  T* const to = out.mutable_data_ptr<T>();
  int64_t* const winner = winners.mutable_data_ptr<int64_t>();
  for_each(out.numel(), [=] __device__(int64_t i) {
    const int64_t column = i % width;
    T largest = T(0);
    int64_t from = -1;
    bags.each(i / width, [&](int64_t, int64_t row) {
      const T x = in[row * row_step + column * column_step];
      if (from < 0 || x > largest) {
        largest = x;
        from = row;
      }
    });
    to[i] = largest;
    winner[i] = from;
  });
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> forward(
    const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets, int64_t mode,
    const std::optional<at::Tensor>& per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  TORCH_CHECK(
      indices.dim() == 1 || indices.dim() == 2, "input has to be a 1D or 2D Tensor, but got Tensor of dimension ",
      indices.dim());
  TORCH_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
  TORCH_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  const at::TensorArg indices_arg(indices, "indices", 1), offsets_arg(offsets, "offsets", 1);
  at::checkScalarTypes("embedding_bag", indices_arg, {at::kLong, at::kInt});
  at::checkScalarTypes("embedding_bag", offsets_arg, {at::kLong, at::kInt});
  TORCH_CHECK(
      mode == kSum || mode == kMean || mode == kMax, "embedding_bag: mode ", mode,
      " is not supported; it must be 0 (sum), 1 (mean) or 2 (max)");
  const at::Tensor factors = or_undefined(per_sample_weights);
  if (factors.defined()) {
    TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
    TORCH_CHECK(
        factors.scalar_type() == weight.scalar_type(), "expected per_sample_weights to have the dtype of weight, ",
        weight.scalar_type(), ", got ", factors.scalar_type());
    TORCH_CHECK(factors.dim() == 1 && factors.numel() == indices.numel(), "expected a weight for each index");
  }
  int64_t count = offsets.size(0);
  if (include_last_offset) {
    TORCH_CHECK(count >= 1, "include_last_offset: number of offsets should be at least 1");
    --count;
  }
  const auto index_dtype =
      indices.scalar_type() == at::kLong || offsets.scalar_type() == at::kLong ? at::kLong : at::kInt;
  const at::Tensor rows = dense_as(indices, at::kLong);
  const at::Tensor begins = dense_as(offsets, at::kLong);
  const at::Tensor of_place = dense_as(factors, weight.scalar_type());
  const Bags bags{
      rows.const_data_ptr<int64_t>(),
      begins.const_data_ptr<int64_t>(),
      rows.numel(),
      count,
      mode == kMax ? count : begins.numel(),
      padding_idx,
      weight.size(0)};
  const at::Tensor sizes = aten::empty(offsets.sizes(), begins.options());
  if (include_last_offset) {
    sizes.zero_(); // the last offset starts no bag
  }
  count_bags(bags, sizes);
  const at::Tensor out = aten::empty({count, weight.size(1)}, weight.options());
  const at::Tensor winners =
      mode == kMax ? aten::empty(out.sizes(), begins.options()) : aten::empty({0}, begins.options());
  MUSA_DISPATCH(weight.scalar_type(), "embedding_bag", (MUSA_FLOATING), {
    if (mode == kMax) {
      maxima<scalar_t>(bags, weight, out, winners);
    } else {
      sums<scalar_t>(bags, weight, of_place, mode == kMean, out);
    }
  });
  return {
      out, bags_of_places(begins, rows.numel(), bags.offsets).to(index_dtype), sizes.to(index_dtype),
      winners.to(index_dtype)};
}

// The contribution of a bag's gradient to one of its positions.
template <typename T>
struct Share {
  using Real = at::opmath_type<T>;
  const T* gradient;
  const T* factor; // one per position, or nullptr
  const int64_t* size; // one per bag, or nullptr
  const int64_t* winner; // one per bag and column, or nullptr
  const int64_t* bag;
  int64_t width, bags;

  __device__ Real operator()(int64_t place, int64_t previous, int64_t row, int64_t column) const {
    const int64_t from = bag[place];
    if (from >= bags) {
      return Real(0);
    }
    const int64_t at = from * width + column;
    if (winner != nullptr && (winner[at] != row || (previous >= 0 && bag[previous] == from))) {
      return Real(0); // counts the winning row once per bag
    }
    Real share = static_cast<Real>(gradient[at]);
    share = factor != nullptr ? share * static_cast<Real>(factor[place]) : share;
    return size != nullptr ? share / static_cast<Real>(size[from]) : share;
  }
};

template <typename T>
void gather_gradients(
    const Segments& segments, const Share<T>& share, int64_t padding, bool by_frequency, const at::Tensor& out) {
  using Real = at::opmath_type<T>;
  const int64_t* const order = segments.order.const_data_ptr<int64_t>();
  const int64_t* const starts = segments.starts.const_data_ptr<int64_t>();
  T* const to = out.mutable_data_ptr<T>();
  for_each(out.numel(), [=] __device__(int64_t i) {
    const int64_t row = i / share.width, column = i % share.width;
    const int64_t begin = starts[row], end = starts[row + 1];
    Real sum = 0;
    if (row != padding && begin < end) {
      for (int64_t k = begin; k < end; ++k) {
        sum += share(order[k], k > begin ? order[k - 1] : -1, row, column);
      }
      sum = by_frequency ? sum / static_cast<Real>(end - begin) : sum;
    }
    to[i] = static_cast<T>(sum);
  });
}

template <typename T>
void factor_gradients(
    const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& bags,
    int64_t padding, const at::Tensor& out) {
  using Real = at::opmath_type<T>;
  const int64_t width = grad.size(1), count = grad.size(0), rows = weight.size(0);
  const int64_t row_step = weight.stride(0), column_step = weight.stride(1);
  const T* const g = grad.const_data_ptr<T>();
  const T* const in = weight.const_data_ptr<T>();
  const int64_t* const named = indices.const_data_ptr<int64_t>();
  const int64_t* const bag = bags.const_data_ptr<int64_t>();
  T* const to = out.mutable_data_ptr<T>();
  each_row<Real>(out.numel(), width, [=] __device__(int64_t place, int64_t first, int64_t step, auto all) {
    const int64_t row = named[place];
    CUDA_KERNEL_ASSERT(row >= 0 && row < rows && "index out of range of the embedding");
    Real sum = 0;
    if (row != padding && bag[place] < count) {
      for (int64_t k = first; k < width; k += step) {
        sum += static_cast<Real>(g[bag[place] * width + k]) * static_cast<Real>(in[row * row_step + k * column_step]);
      }
    }
    sum = all(sum, Plus());
    if (first == 0) {
      to[place] = static_cast<T>(sum);
    }
  });
}

} // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> _embedding_bag(
    const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets, bool, int64_t mode, bool,
    const std::optional<at::Tensor>& per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  return forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> _embedding_bag_forward_only(
    const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets, bool, int64_t mode, bool,
    const std::optional<at::Tensor>& per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  return forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}

at::Tensor _embedding_bag_dense_backward(
    const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offset2bag, const at::Tensor& bag_size,
    const at::Tensor& maximum_indices, int64_t num_weights, bool scale_grad_by_freq, int64_t mode,
    const std::optional<at::Tensor>& per_sample_weights, int64_t padding_idx) {
  TORCH_CHECK(grad.dim() == 2, "expected a gradient of 2 dimensions, got ", grad.dim());
  TORCH_CHECK(
      mode == kSum || mode == kMean || mode == kMax, "embedding_bag: mode ", mode,
      " is not supported; it must be 0 (sum), 1 (mean) or 2 (max)");
  TORCH_CHECK(
      mode == kSum || !or_undefined(per_sample_weights).defined(),
      "embedding_bag: per_sample_weights only supported with mode='sum'");
  const at::Tensor out = aten::empty({num_weights, grad.size(1)}, grad.options());
  if (out.numel() == 0) {
    return out;
  }
  const char* const op = "_embedding_bag_dense_backward";
  musa_runtime::check_count(op, "offset2bag", offset2bag, indices.numel());
  musa_runtime::check_count(op, "per_sample_weights", per_sample_weights, indices.numel());
  if (mode == kMean) {
    TORCH_CHECK(
        bag_size.numel() >= grad.size(0), op, ": expected bag_size of a size for each of ", grad.size(0),
        " bags, got shape ", bag_size.sizes());
  }
  if (mode == kMax) {
    musa_runtime::check_shape(op, "maximum_indices", maximum_indices, grad.sizes());
  }
  const Segments segments(indices, num_weights);
  const at::Tensor g = grad.contiguous();
  const at::Tensor factors = dense_as(per_sample_weights, grad.scalar_type());
  const at::Tensor sizes = mode == kMean ? dense_as(bag_size, at::kLong) : at::Tensor();
  const at::Tensor winners = mode == kMax ? dense_as(maximum_indices, at::kLong) : at::Tensor();
  const at::Tensor bags = dense_as(offset2bag, at::kLong);
  MUSA_DISPATCH(grad.scalar_type(), "embedding_bag_dense_backward", (MUSA_FLOATING), {
    const Share<scalar_t> share{
        g.const_data_ptr<scalar_t>(),
        data_or_null<scalar_t>(factors),
        data_or_null<int64_t>(sizes),
        data_or_null<int64_t>(winners),
        bags.const_data_ptr<int64_t>(),
        grad.size(1),
        grad.size(0)};
    gather_gradients<scalar_t>(segments, share, padding_idx, scale_grad_by_freq && mode != kMax, out);
  });
  return out;
}

at::Tensor _embedding_bag_per_sample_weights_backward(
    const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
    const at::Tensor& offset2bag, int64_t mode, int64_t padding_idx) {
  TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(
      grad.dim() == 2 && weight.dim() == 2 && indices.dim() == 1 && weight.size(1) == grad.size(1),
      "expected a gradient of (bags, width), a weight of (rows, width) and indices of one dimension, got ",
      grad.sizes(), ", ", weight.sizes(), " and ", indices.sizes());
  const at::Tensor named = dense_as(indices, at::kLong);
  const at::Tensor bags = offset2bag.numel() == named.numel()
      ? dense_as(offset2bag, at::kLong)
      : bags_of_places(dense_as(offsets, at::kLong), named.numel(), offsets.numel());
  const at::Tensor g = grad.contiguous();
  const at::Tensor out = aten::empty({named.numel()}, grad.options());
  MUSA_DISPATCH(grad.scalar_type(), "embedding_bag_per_sample_weights_backward", (MUSA_FLOATING), {
    factor_gradients<scalar_t>(g, weight, named, bags, padding_idx, out);
  });
  return out;
}

} // namespace musa_ops_ported
