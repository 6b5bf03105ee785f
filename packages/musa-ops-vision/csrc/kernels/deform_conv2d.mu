// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Convolution that samples its input between pixels: each kernel tap has its own offset at each output pixel, and
// optionally a factor (mask). The samples are written as the columns of a matrix, which torch multiplies by the
// weight. In the backward pass the gradients of the columns are distributed to the input, the offsets and the mask.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/musa/Atomic.muh>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/musa/MUSAGuard.h>

#include <algorithm>
#include <cmath>

#include "checks.h"
#include "dispatch.h"
#include "launch.muh"
#include "operators.h"

namespace musa_ops_vision {
namespace {

// Images are processed in batches whose columns have at most this many elements, at least one image at a time.
constexpr int64_t kMostElements = int64_t{1} << 26;
// Channels per thread; they share the sample positions.
constexpr int kChannelBlock = 16;

// A bilinear sample of a plane. Pixels outside the image are zero.
template <typename Real>
struct Sample {
  int64_t top = 0, left = 0;
  Real y = 0, x = 0; // relative to the top left pixel, in [0, 1)
  bool inside = false; // whether any of the four pixels is in the image

  __device__ Sample(Real at_y, Real at_x, const Convolution& c) {
    // Also false for NaN. Includes -1, where the weight of pixel 0 is 0 but its derivative from the right is not.
    inside = at_y >= -1 && at_x >= -1 && at_y < static_cast<Real>(c.height) && at_x < static_cast<Real>(c.width);
    if (inside) {
      const Real floor_y = std::floor(at_y), floor_x = std::floor(at_x);
      top = static_cast<int64_t>(floor_y);
      left = static_cast<int64_t>(floor_x);
      y = at_y - floor_y;
      x = at_x - floor_x;
    }
  }
  // Calls use(pixel in the plane, weight, d weight / dy, d weight / dx) for the pixels in the image.
  template <typename Use>
  __device__ C10_ALWAYS_INLINE void each(const Convolution& c, const Use& use) const {
    if (!inside) {
      return;
    }
    for (int down = 0; down < 2; ++down) {
      const int64_t row = top + down;
      if (row < 0 || row >= c.height) {
        continue;
      }
      const Real by_y = down != 0 ? y : 1 - y, slope_y = down != 0 ? Real(1) : Real(-1);
      for (int right = 0; right < 2; ++right) {
        const int64_t column = left + right;
        if (column < 0 || column >= c.width) {
          continue;
        }
        const Real by_x = right != 0 ? x : 1 - x, slope_x = right != 0 ? Real(1) : Real(-1);
        use(row * c.width + column, by_y * by_x, slope_y * by_x, by_y * slope_x);
      }
    }
  }
};

// Sample positions of images `first` to `first + images - 1` of a batch.
template <typename T, typename Real>
struct Places {
  Convolution c;
  const T* offset;
  const T* mask; // nullptr: no mask

  // Tap k of an offset group at output pixel `pixel`; `image` counts from the first image of `offset`.
  __device__ Sample<Real> sample(int64_t image, int64_t group, int64_t k, int64_t pixel) const {
    const int64_t plane = ((image * c.offset_groups + group) * c.taps() + k) * 2;
    const Real down = static_cast<Real>(offset[plane * c.pixels() + pixel]);
    const Real right = static_cast<Real>(offset[(plane + 1) * c.pixels() + pixel]);
    const int64_t out_y = quotient(pixel, c.out_w), out_x = pixel - out_y * c.out_w;
    const int64_t row = quotient(k, c.kernel_w), column = k - row * c.kernel_w;
    return Sample<Real>(
        static_cast<Real>(out_y * c.stride_h - c.pad_h + row * c.dilation_h) + down,
        static_cast<Real>(out_x * c.stride_w - c.pad_w + column * c.dilation_w) + right, c);
  }
  __device__ int64_t mask_element(int64_t image, int64_t group, int64_t k, int64_t pixel) const {
    return ((image * c.offset_groups + group) * c.taps() + k) * c.pixels() + pixel;
  }
  __device__ Real factor(int64_t image, int64_t group, int64_t k, int64_t pixel) const {
    return mask == nullptr ? Real(1) : static_cast<Real>(mask[mask_element(image, group, k, pixel)]);
  }
};

// Returns the offset of a channel's element in the columns (images, channels, taps, pixels).
__device__ inline int64_t column_element(
    const Convolution& c, int64_t image, int64_t channel, int64_t k, int64_t pixel) {
  return ((image * c.channels + channel) * c.taps() + k) * c.pixels() + pixel;
}

// A work item (image, offset group, block of its channels, tap, pixel); the pixel varies fastest.
struct Work {
  int64_t image, group, first, end, k, pixel;

  __device__ Work(int64_t i, const Convolution& c, int64_t channel_blocks) {
    const int64_t channels = c.channels / c.offset_groups;
    pixel = take(i, c.pixels());
    k = take(i, c.taps());
    const int64_t block = take(i, channel_blocks);
    group = take(i, c.offset_groups);
    image = i;
    first = group * channels + block * kChannelBlock;
    end = first + kChannelBlock < (group + 1) * channels ? first + kChannelBlock : (group + 1) * channels;
  }
};

int64_t channel_blocks_of(const Convolution& c) {
  return (c.channels / c.offset_groups + kChannelBlock - 1) / kChannelBlock;
}

template <typename T, typename Real>
struct ToColumns {
  Places<T, Real> places;
  int64_t channel_blocks;
  const T* input;
  T* columns;

  __device__ void operator()(int64_t i) const {
    const Convolution& c = places.c;
    const Work w(i, c, channel_blocks);
    const Sample<Real> sample = places.sample(w.image, w.group, w.k, w.pixel);
    const Real factor = places.factor(w.image, w.group, w.k, w.pixel);
    const int64_t plane = c.height * c.width;
    const T* from = input + (w.image * c.channels + w.first) * plane;
    T* to = columns + column_element(c, w.image, w.first, w.k, w.pixel);
    const int64_t step = c.taps() * c.pixels();
    for (int64_t channel = w.first; channel < w.end; ++channel, from += plane, to += step) {
      Real sum = 0;
      sample.each(c, [&](int64_t pixel, Real weight, Real, Real) { sum += weight * static_cast<Real>(from[pixel]); });
      *to = static_cast<T>(sum * factor);
    }
  }
};

// The gradient of the input from that of the columns, with atomic additions.
template <typename T, typename Real>
struct FromColumns {
  Places<T, Real> places;
  int64_t channel_blocks;
  const T* grad_columns;
  Real* sums;

  __device__ void operator()(int64_t i) const {
    const Convolution& c = places.c;
    const Work w(i, c, channel_blocks);
    const Sample<Real> sample = places.sample(w.image, w.group, w.k, w.pixel);
    const Real factor = places.factor(w.image, w.group, w.k, w.pixel);
    const int64_t plane = c.height * c.width;
    Real* to = sums + (w.image * c.channels + w.first) * plane;
    const T* from = grad_columns + column_element(c, w.image, w.first, w.k, w.pixel);
    const int64_t step = c.taps() * c.pixels();
    for (int64_t channel = w.first; channel < w.end; ++channel, from += step, to += plane) {
      const Real gradient = static_cast<Real>(*from) * factor;
      sample.each(
          c, [&](int64_t pixel, Real weight, Real, Real) { gpuAtomicAddNoReturn(to + pixel, gradient * weight); });
    }
  }
};

// The same with one thread per plane, in a reproducible order.
template <typename T, typename Real>
struct FromColumnsInOrder {
  Places<T, Real> places;
  const T* grad_columns;
  Real* sums;

  __device__ void operator()(int64_t i) const {
    const Convolution& c = places.c;
    Real* const to = sums + i * c.height * c.width;
    const int64_t channel = take(i, c.channels), image = i;
    const int64_t group = channel / (c.channels / c.offset_groups);
    for (int64_t k = 0; k < c.taps(); ++k) {
      for (int64_t pixel = 0; pixel < c.pixels(); ++pixel) {
        const Real gradient = static_cast<Real>(grad_columns[column_element(c, image, channel, k, pixel)]) *
            places.factor(image, group, k, pixel);
        places.sample(image, group, k, pixel).each(c, [&](int64_t place, Real weight, Real, Real) {
          to[place] += gradient * weight;
        });
      }
    }
  }
};

// Gradients of offsets and mask: one thread per tap, offset group and pixel sums over the channels of the group.
template <typename T, typename Real>
struct PlaceGradients {
  Places<T, Real> places;
  const T* input;
  const T* grad_columns;
  T* grad_offset;
  T* grad_mask; // nullptr if there is no mask

  __device__ void operator()(int64_t i) const {
    const Convolution& c = places.c;
    const int64_t pixel = take(i, c.pixels());
    const int64_t k = take(i, c.taps());
    const int64_t group = take(i, c.offset_groups), image = i;
    const int64_t channels = c.channels / c.offset_groups;
    const Sample<Real> sample = places.sample(image, group, k, pixel);
    const int64_t plane = c.height * c.width;
    const T* from = input + (image * c.channels + group * channels) * plane;
    const T* gradients = grad_columns + column_element(c, image, group * channels, k, pixel);
    const int64_t step = c.taps() * c.pixels();
    Real by_y = 0, by_x = 0, by_factor = 0;
    for (int64_t channel = 0; channel < channels; ++channel, from += plane, gradients += step) {
      const Real gradient = static_cast<Real>(*gradients);
      sample.each(c, [&](int64_t place, Real weight, Real slope_y, Real slope_x) {
        const Real value = static_cast<Real>(from[place]) * gradient;
        by_y += value * slope_y;
        by_x += value * slope_x;
        by_factor += value * weight;
      });
    }
    const Real factor = places.factor(image, group, k, pixel);
    const int64_t element = places.mask_element(image, group, k, pixel);
    const int64_t offset = (element - pixel) * 2 + pixel;
    grad_offset[offset] = static_cast<T>(by_y * factor);
    grad_offset[offset + c.pixels()] = static_cast<T>(by_x * factor);
    if (grad_mask != nullptr) {
      grad_mask[element] = static_cast<T>(by_factor);
    }
  }
};

// The tensors of a call, made contiguous.
struct Operands {
  at::Tensor input, weight, offset, mask;

  Operands(
      const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offset, const at::Tensor& mask,
      bool use_mask)
      : input(input.contiguous()),
        weight(weight.contiguous()),
        offset(offset.contiguous()),
        mask(use_mask ? mask.contiguous() : at::Tensor()) {}
};

template <typename T, typename Real>
Places<T, Real> places_of(const Convolution& c, const Operands& operands, int64_t first) {
  const int64_t taps = c.offset_groups * c.taps() * c.pixels();
  return {
      c, operands.offset.const_data_ptr<T>() + first * taps * 2,
      operands.mask.defined() ? operands.mask.const_data_ptr<T>() + first * taps : nullptr};
}

// Returns the number of images per batch.
int64_t images_at_a_time(const Convolution& c) {
  const int64_t elements = c.channels * c.taps() * c.pixels();
  return std::clamp<int64_t>(kMostElements / std::max<int64_t>(elements, 1), 1, std::max<int64_t>(c.batches, 1));
}

// Returns the samples of some images, (images, groups, channels / groups * taps, pixels).
at::Tensor columns_of(const Convolution& c, const Operands& operands, int64_t first, int64_t images) {
  at::Tensor columns =
      at::empty({images, c.groups, c.channels / c.groups * c.taps(), c.pixels()}, operands.input.options());
  const int64_t blocks = channel_blocks_of(c);
  MUSA_VISION_DISPATCH(operands.input.scalar_type(), "deform_conv2d", {
    for_each(
        images * c.offset_groups * blocks * c.taps() * c.pixels(),
        ToColumns<scalar_t, op_t>{
            places_of<scalar_t, op_t>(c, operands, first), blocks,
            operands.input.const_data_ptr<scalar_t>() + first * c.channels * c.height * c.width,
            columns.mutable_data_ptr<scalar_t>()});
  });
  return columns;
}

void add_input_gradient(
    const Convolution& c, const Operands& operands, int64_t first, int64_t images, const at::Tensor& grad_columns,
    const at::Tensor& sums) {
  const int64_t blocks = channel_blocks_of(c);
  MUSA_VISION_DISPATCH(operands.input.scalar_type(), "_deform_conv2d_backward", {
    const auto places = places_of<scalar_t, op_t>(c, operands, first);
    const scalar_t* const from = grad_columns.const_data_ptr<scalar_t>();
    op_t* const to = sums.mutable_data_ptr<op_t>() + first * c.channels * c.height * c.width;
    if (at::globalContext().deterministicAlgorithms()) {
      for_each(images * c.channels, FromColumnsInOrder<scalar_t, op_t>{places, from, to});
    } else {
      for_each(
          images * c.offset_groups * blocks * c.taps() * c.pixels(),
          FromColumns<scalar_t, op_t>{places, blocks, from, to});
    }
  });
}

void write_place_gradients(
    const Convolution& c, const Operands& operands, int64_t first, int64_t images, const at::Tensor& grad_columns,
    const at::Tensor& grad_offset, const at::Tensor& grad_mask) {
  const int64_t taps = c.offset_groups * c.taps() * c.pixels();
  MUSA_VISION_DISPATCH(operands.input.scalar_type(), "_deform_conv2d_backward", {
    for_each(
        images * taps,
        PlaceGradients<scalar_t, op_t>{
            places_of<scalar_t, op_t>(c, operands, first),
            operands.input.const_data_ptr<scalar_t>() + first * c.channels * c.height * c.width,
            grad_columns.const_data_ptr<scalar_t>(), grad_offset.mutable_data_ptr<scalar_t>() + first * taps * 2,
            c.use_mask ? grad_mask.mutable_data_ptr<scalar_t>() + first * taps : nullptr});
  });
}

} // namespace

at::Tensor deform_conv2d(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offset, const at::Tensor& mask,
    const at::Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t dilation_h,
    int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask) {
  const Convolution c = check_convolution(
      input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
      offset_groups, use_mask);
  const c10::musa::MUSAGuard guard(input.device());
  const at::Tensor out = at::empty({c.batches, c.groups, c.out_channels / c.groups, c.pixels()}, input.options());
  if (out.numel() > 0) {
    const Operands operands(input, weight, offset, mask, use_mask);
    const at::Tensor matrices = operands.weight.view({c.groups, c.out_channels / c.groups, -1});
    const int64_t at_a_time = images_at_a_time(c);
    for (int64_t first = 0; first < c.batches; first += at_a_time) {
      const int64_t images = std::min(at_a_time, c.batches - first);
      out.narrow(0, first, images).copy_(at::matmul(matrices, columns_of(c, operands, first, images)));
    }
  }
  return out.view({c.batches, c.out_channels, c.out_h, c.out_w}).add_(bias.view({1, -1, 1, 1}));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> deform_conv2d_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offset,
    const at::Tensor& mask, const at::Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
    int64_t dilation_h, int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask) {
  const Convolution c = check_convolution(
      input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
      offset_groups, use_mask);
  const char* const op = "_deform_conv2d_backward";
  check_alike(op, {{"grad", grad}, {"input", input}});
  TORCH_CHECK(
      grad.sizes() == at::IntArrayRef({c.batches, c.out_channels, c.out_h, c.out_w}), op,
      ": expected a gradient of shape (", c.batches, ", ", c.out_channels, ", ", c.out_h, ", ", c.out_w, "), but got ",
      grad.sizes());
  const c10::musa::MUSAGuard guard(input.device());
  const at::Tensor sums = at::zeros(input.sizes(), input.options().dtype(accumulated(input.scalar_type())));
  at::Tensor grad_weight =
      at::zeros({c.groups, c.out_channels / c.groups, c.channels / c.groups * c.taps()}, weight.options());
  at::Tensor grad_offset = at::zeros(offset.sizes(), offset.options());
  at::Tensor grad_mask = at::zeros(mask.sizes(), mask.options());
  if (grad.numel() > 0 && input.numel() > 0) {
    const Operands operands(input, weight, offset, mask, use_mask);
    const at::Tensor transposed = operands.weight.view({c.groups, c.out_channels / c.groups, -1}).transpose(1, 2);
    const at::Tensor given = grad.contiguous().view({c.batches, c.groups, c.out_channels / c.groups, c.pixels()});
    const int64_t at_a_time = images_at_a_time(c);
    for (int64_t first = 0; first < c.batches; first += at_a_time) {
      const int64_t images = std::min(at_a_time, c.batches - first);
      const at::Tensor part = given.narrow(0, first, images);
      const at::Tensor grad_columns = at::matmul(transposed, part).contiguous();
      add_input_gradient(c, operands, first, images, grad_columns, sums);
      write_place_gradients(c, operands, first, images, grad_columns, grad_offset, grad_mask);
      // matmul returns one product per image; sum(0) adds them.
      grad_weight.add_(at::matmul(part, columns_of(c, operands, first, images).transpose(2, 3)).sum(0));
    }
  }
  return {
      sums.to(input.scalar_type()), grad_weight.view(weight.sizes()), grad_offset, grad_mask,
      grad.sum({0, 2, 3}).to(bias.scalar_type())};
}

} // namespace musa_ops_vision
