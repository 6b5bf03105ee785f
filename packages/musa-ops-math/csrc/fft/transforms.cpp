// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/view_as_real.h>
#include <c10/musa/MUSAGuard.h>
#include <fft/plan_cache.h>
#include <musa_runtime/op_pack.h>

#include <algorithm>
#include <cmath>
#include <optional>

// torch's transforms by muFFT. A result has the strides that torch's meta functions give it: dimensions that are not
// transformed first, in the order of the operand's strides, then those that are.

namespace musa_ops_math::fft {
namespace {

using at::DimVector;
using at::Tensor;

DimVector others(int64_t rank, at::IntArrayRef dims) {
  DimVector found;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      found.push_back(dim);
    }
  }
  return found;
}

// Sorts dimensions from `begin` to `end` by their strides, the largest first.
void sort_by_stride(const Tensor& tensor, DimVector::iterator begin, DimVector::iterator end) {
  std::stable_sort(begin, end, [&](int64_t a, int64_t b) { return tensor.stride(a) > tensor.stride(b); });
}

// The dimensions of a tensor in the order of its memory: `batch`, then `dims`.
struct Order {
  DimVector batch, dims;

  Order(const Tensor& tensor, at::IntArrayRef transformed, bool last_stays)
      : batch(others(tensor.dim(), transformed)), dims(transformed) {
    sort_by_stride(tensor, batch.begin(), batch.end());
    sort_by_stride(tensor, dims.begin(), dims.end() - (last_stays ? 1 : 0));
  }
  Order(DimVector batch_dims, DimVector transformed) : batch(std::move(batch_dims)), dims(std::move(transformed)) {}

  DimVector all() const {
    DimVector order(batch);
    order.append(dims.begin(), dims.end());
    return order;
  }
};

// A dense tensor of these sizes whose memory has its dimensions in this order.
Tensor empty_in_order(at::IntArrayRef sizes, const Order& order, const at::TensorOptions& options) {
  const DimVector places = order.all();
  DimVector permuted(sizes.size()), back(sizes.size());
  for (size_t i = 0; i < places.size(); ++i) {
    permuted[i] = sizes[static_cast<size_t>(places[i])];
    back[static_cast<size_t>(places[i])] = static_cast<int64_t>(i);
  }
  return at::empty(permuted, options).permute(back);
}

Tensor copy_in_order(const Tensor& tensor, const Order& order) {
  return empty_in_order(tensor.sizes(), order, tensor.options()).copy_(tensor);
}

// The layout of a tensor with its dimensions in this order; empty if muFFT cannot describe it.
std::optional<Layout> layout_of(const Tensor& tensor, const Order& order) {
  Layout layout;
  const auto size = [&](size_t i) { return tensor.size(order.dims[i]); };
  const auto stride = [&](size_t i) { return tensor.stride(order.dims[i]); };
  const size_t rank = order.dims.size();
  layout.stride = size(rank - 1) == 1 ? 1 : stride(rank - 1);
  if (layout.stride <= 0) {
    return std::nullopt; // expanded
  }
  int64_t inner = layout.stride;
  for (size_t i = rank; i-- > 1;) {
    // The strides of dimensions with one element are arbitrary.
    layout.embed[i] = size(i - 1) == 1 ? size(i) : stride(i - 1) / inner;
    if (layout.embed[i] < size(i) || (size(i - 1) != 1 && stride(i - 1) % inner != 0)) {
      return std::nullopt;
    }
    inner *= layout.embed[i];
  }
  layout.embed[0] = size(0);
  layout.distance = inner * size(0);
  int64_t count = 1;
  for (auto dim = order.batch.rbegin(); dim != order.batch.rend(); ++dim) {
    if (tensor.size(*dim) == 1) {
      continue;
    }
    if (count == 1) {
      layout.distance = tensor.stride(*dim);
    } else if (tensor.stride(*dim) != layout.distance * count) {
      return std::nullopt;
    }
    count *= tensor.size(*dim);
  }
  return layout.distance > 0 ? std::optional(layout) : std::nullopt;
}

// muFFT reads and writes pairs of real numbers.
bool is_aligned(const Tensor& tensor) {
  const size_t pair = tensor.is_complex() ? tensor.itemsize() : 2 * tensor.itemsize();
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % pair == 0;
}

// Transforms at most kMostDims dimensions of `in` into `out`, which may be the same tensor, in this order of dimensions.
// `in` may be overwritten.
void transform(const Tensor& out, const Tensor& in, const Order& order, bool forward) {
  std::optional<Layout> from = is_aligned(in) ? layout_of(in, order) : std::nullopt;
  const Tensor source = from.has_value() ? in : copy_in_order(in, order);
  std::optional<Layout> to = is_aligned(out) ? layout_of(out, order) : std::nullopt;
  const Tensor target = to.has_value() ? out : empty_in_order(out.sizes(), order, out.options());
  PlanKey key;
  key.rank = order.dims.size();
  for (size_t i = 0; i < key.rank; ++i) {
    key.sizes[i] = std::max(in.size(order.dims[i]), out.size(order.dims[i])); // of a real transform, the real side
  }
  for (const int64_t dim : order.batch) {
    key.batch *= in.size(dim);
  }
  key.in = from.has_value() ? *from : *layout_of(source, order);
  key.out = to.has_value() ? *to : *layout_of(target, order);
  key.in_type = in.scalar_type();
  key.out_type = out.scalar_type();
  const c10::musa::MUSAGuard on(out.device());
  PlanCache::of(out.device().index())
      .run(key, const_cast<void*>(source.const_data_ptr()), target.mutable_data_ptr(), forward);
  if (!to.has_value()) {
    out.copy_(target);
  }
}

// Transforms any number of dimensions of a complex tensor, the last ones first. `out` is dense.
void transform_all(const Tensor& out, const Tensor& in, DimVector left, bool forward) {
  Tensor from = in;
  while (!left.empty()) {
    const size_t count = std::min(left.size(), kMostDims);
    const DimVector dims(left.end() - static_cast<std::ptrdiff_t>(count), left.end());
    left.resize(left.size() - count);
    DimVector batch = others(in.dim(), dims);
    sort_by_stride(out, batch.begin(), batch.end());
    transform(out, from, Order(batch, dims), forward);
    from = out;
  }
}

// torch's codes: 0 is no scale, 1 divides by the root of the number of elements of a transform, 2 by the number.
void scale(const Tensor& out, int64_t normalization, at::IntArrayRef sizes, at::IntArrayRef dims) {
  if (normalization == 0) {
    return;
  }
  double count = 1;
  for (const int64_t dim : dims) {
    count *= static_cast<double>(sizes[static_cast<size_t>(dim)]);
  }
  const double factor = normalization == 1 ? 1 / std::sqrt(count) : 1 / count;
  Tensor numbers = out.is_complex() ? at::view_as_real(out) : out;
  numbers.mul_(factor);
}

// torch.fft passes dimensions from 0 on; direct calls of the operators may not.
void check_dims(const Tensor& self, at::IntArrayRef dims) {
  for (const int64_t dim : dims) {
    TORCH_CHECK_INDEX(
        dim >= 0 && dim < self.dim(), "Dimension out of range: the transform of a tensor with ", self.dim(),
        " dimensions got ", dim, ", and expects numbers from 0 on");
  }
}

bool is_float(at::ScalarType type) { return type == at::kFloat || type == at::kDouble; }
bool is_complex_float(at::ScalarType type) { return type == at::kComplexFloat || type == at::kComplexDouble; }

// ---- complex to complex

Tensor c2c(const Tensor& self, c10::SymIntArrayRef sym_dims, int64_t normalization, bool forward) {
  const at::IntArrayRef dims = C10_AS_INTARRAYREF_SLOW(sym_dims);
  check_dims(self, dims);
  if (dims.empty()) {
    return self.clone();
  }
  const Order order(self, dims, /*last_stays=*/false);
  const Tensor out = empty_in_order(self.sizes(), order, self.options());
  if (out.numel() != 0) {
    transform_all(out, self, order.dims, forward);
    scale(out, normalization, self.sizes(), dims);
  }
  return out;
}

bool c2c_served(const Tensor& self, c10::SymIntArrayRef, int64_t, bool) { return is_complex_float(self.scalar_type()); }

// ---- real to complex

// Writes the second half of a transform of real numbers, which is the conjugate of the first half at the negated frequencies.
void fill_second_half(const Tensor& out, at::IntArrayRef dims) {
  const int64_t last = dims.back(), size = out.size(last), half = size / 2 + 1;
  if (size == half) {
    return;
  }
  Tensor first = at::flip(out.narrow(last, 1, size - half), dims);
  DimVector rolled(dims.begin(), dims.end() - 1);
  if (!rolled.empty()) {
    first = at::roll(first, DimVector(rolled.size(), 1), rolled); // frequency 0 stays in its place
  }
  out.narrow(last, half, size - half).copy_(first.conj());
}

Tensor r2c(const Tensor& self, at::IntArrayRef dims, int64_t normalization, bool onesided) {
  check_dims(self, dims);
  const int64_t last = dims.back();
  const Order order(self, dims, /*last_stays=*/true);
  DimVector sizes(self.sizes());
  const int64_t half = sizes[static_cast<size_t>(last)] / 2 + 1;
  sizes[static_cast<size_t>(last)] = onesided ? half : self.size(last);
  const Tensor out = empty_in_order(sizes, order, self.options().dtype(c10::toComplexType(self.scalar_type())));
  if (out.numel() == 0) {
    return out;
  }
  const Tensor first = out.narrow(last, 0, half);
  const size_t count = std::min(order.dims.size(), kMostDims);
  DimVector inner(order.dims.end() - static_cast<std::ptrdiff_t>(count), order.dims.end());
  DimVector outer(order.dims.begin(), order.dims.end() - static_cast<std::ptrdiff_t>(count));
  DimVector batch(order.batch);
  batch.append(outer.begin(), outer.end());
  transform(first, self, Order(batch, inner), /*forward=*/true);
  transform_all(first, first, outer, /*forward=*/true);
  if (!onesided) {
    fill_second_half(out, dims);
  }
  scale(out, normalization, self.sizes(), dims);
  return out;
}

bool r2c_served(const Tensor& self, at::IntArrayRef dims, int64_t, bool) {
  return is_float(self.scalar_type()) && !dims.empty();
}

// ---- complex to real

Tensor c2r(const Tensor& self, at::IntArrayRef dims, int64_t normalization, c10::SymInt sym_size) {
  check_dims(self, dims);
  const int64_t last = dims.back();
  TORCH_CHECK(
      self.size(last) == sym_size.expect_int() / 2 + 1, "a transform to ", sym_size, " real numbers needs ",
      sym_size / 2 + 1, " complex ones, but got ", self.size(last));
  DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(last)] = sym_size.expect_int();
  const at::IntArrayRef outer = dims.slice(0, dims.size() - 1);
  // As if the other dimensions were transformed first, into a tensor of their own.
  const Order first(self, outer, /*last_stays=*/false);
  const Tensor between = empty_in_order(self.sizes(), first, self.options().device(at::kMeta));
  const Order result(between, {last}, /*last_stays=*/true);
  const Tensor out = empty_in_order(sizes, result, self.options().dtype(c10::toRealValueType(self.scalar_type())));
  if (out.numel() == 0) {
    return out;
  }
  Order order(out, dims, /*last_stays=*/true);
  // muFFT may overwrite its operand.
  const Tensor copy = copy_in_order(self, order);
  if (order.dims.size() > kMostDims) {
    const auto inner = order.dims.end() - static_cast<std::ptrdiff_t>(kMostDims);
    transform_all(copy, copy, DimVector(order.dims.begin(), inner), /*forward=*/false);
    order.batch.append(order.dims.begin(), inner);
    order.dims.erase(order.dims.begin(), inner);
  }
  transform(out, copy, order, /*forward=*/false);
  scale(out, normalization, sizes, dims);
  return out;
}

bool c2r_served(const Tensor& self, at::IntArrayRef dims, int64_t, c10::SymInt) {
  return is_complex_float(self.scalar_type()) && !dims.empty();
}

// ---- into a given tensor

template <auto transform>
struct Out;
template <typename... Args, Tensor (*transform)(Args...)>
struct Out<transform> {
  static Tensor& call(Args... args, Tensor& out) {
    const Tensor result = transform(args...);
    at::native::resize_output(out, result.sizes());
    return out.copy_(result);
  }
};

template <auto served>
struct OutServed;
template <typename... Args, bool (*served)(const Tensor&, Args...)>
struct OutServed<served> {
  static bool call(const Tensor& self, Args... args, Tensor& out) {
    return out.device() == self.device() && served(self, args...);
  }
};

MUSA_OP_PACK(math, pack) {
  pack.impl("aten::_fft_c2c", TORCH_FN(c2c), TORCH_FN(c2c_served))
      .impl("aten::_fft_c2c.out", TORCH_FN((Out<&c2c>::call)), TORCH_FN((OutServed<&c2c_served>::call)))
      .impl("aten::_fft_r2c", TORCH_FN(r2c), TORCH_FN(r2c_served))
      .impl("aten::_fft_r2c.out", TORCH_FN((Out<&r2c>::call)), TORCH_FN((OutServed<&r2c_served>::call)))
      .impl("aten::_fft_c2r", TORCH_FN(c2r), TORCH_FN(c2r_served))
      .impl("aten::_fft_c2r.out", TORCH_FN((Out<&c2r>::call)), TORCH_FN((OutServed<&c2r_served>::call)));
}

} // namespace
} // namespace musa_ops_math::fft
