// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Samples an image at the positions that a grid gives, in [-1, 1] per dimension. A position has taps in each
// dimension: input indices with weights, and the derivatives of the weights with respect to the position.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/musa/Atomic.muh>
#include <ATen/native/GridSamplerUtils.h>
#include <musa_runtime/argument_checks.h>

#include <cmath>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels/GridSampler.h"
#include "kernels/cubic.h"
#include "kernels/volume.h"

namespace musa_ops_ported {
namespace {

using Interpolation = at::native::GridSamplerInterpolation;
using Outside = at::native::GridSamplerPadding;

// A value, and its derivative with respect to the grid coordinate.
template <typename Real>
struct Sloped {
  Real value, slope;
};

template <typename Real>
struct Taps {
  int count = 1;
  int64_t index[4] = {0, 0, 0, 0}; // -1: outside the image, where the value is 0
  Real weight[4] = {1, 0, 0, 0}, slope[4] = {0, 0, 0, 0};
};

template <typename Real>
struct Sampler {
  Interpolation interpolation;
  Outside outside;
  bool align;

  // Converts [-1, 1] to element indices. -1 and 1 are the centres of the corner elements if `align`, otherwise their
  // outer edges.
  C10_HOST_DEVICE Sloped<Real> unnormalized(Real x, int64_t size) const {
    const Real half = static_cast<Real>(align ? size - 1 : size) / 2;
    return {align ? (x + 1) * half : ((x + 1) * static_cast<Real>(size) - 1) / 2, half};
  }
  C10_HOST_DEVICE static Sloped<Real> clipped(Sloped<Real> x, int64_t size) {
    const Real last = static_cast<Real>(size - 1);
    if (!(x.value > 0)) { // also true for NaN
      return {0, 0};
    }
    return x.value >= last ? Sloped<Real>{last, 0} : x;
  }
  // Reflects at the centres of the outermost elements if `align`, otherwise at their outer edges.
  C10_HOST_DEVICE Sloped<Real> reflected(Sloped<Real> x, int64_t size) const {
    const Real low = align ? Real(0) : Real(-0.5);
    const Real length = static_cast<Real>(align ? size - 1 : size);
    if (length <= 0) {
      return {0, 0};
    }
    const Real from = x.value - low;
    const Real sign = from < 0 ? Real(-1) : Real(1);
    const Real far = std::abs(from);
    const Real flips = std::floor(far / length);
    const Real rest = std::fmod(far, length);
    const bool even = std::fmod(flips, Real(2)) == 0;
    return even ? Sloped<Real>{rest + low, x.slope * sign} : Sloped<Real>{length - rest + low, -x.slope * sign};
  }
  C10_HOST_DEVICE Sloped<Real> brought_in(Sloped<Real> x, int64_t size) const {
    switch (outside) {
      case Outside::Border: return clipped(x, size);
      case Outside::Reflection: return clipped(reflected(x, size), size);
      default: return x;
    }
  }
  // Returns the element at an integral position, or -1 if outside. Compares before converting, because the position
  // may exceed int64.
  C10_HOST_DEVICE static int64_t element(Real at, int64_t size) {
    return at >= 0 && at < static_cast<Real>(size) ? static_cast<int64_t>(at) : -1;
  }

  C10_HOST_DEVICE Taps<Real> taps(Real coordinate, int64_t size) const {
    Taps<Real> result;
    const Sloped<Real> raw = unnormalized(coordinate, size);
    if (interpolation == Interpolation::Bicubic) {
      cubic(result, raw, size);
      return result;
    }
    const Sloped<Real> at = brought_in(raw, size);
    if (interpolation == Interpolation::Nearest) {
      result.index[0] = element(std::nearbyint(at.value), size);
      return result;
    }
    const Real floor = std::floor(at.value);
    const Real rest = at.value - floor;
    result.count = 2;
    for (int k = 0; k < 2; ++k) {
      result.index[k] = floor == floor ? element(floor + static_cast<Real>(k), size) : 0; // NaN stays in the weight
      result.weight[k] = k == 0 ? 1 - rest : rest;
      result.slope[k] = k == 0 ? -at.slope : at.slope;
    }
    return result;
  }
  C10_HOST_DEVICE void cubic(Taps<Real>& result, Sloped<Real> at, int64_t size) const {
    constexpr Real a = Real(-0.75);
    const Real floor = std::floor(at.value);
    const Real rest = at.value - floor;
    result.count = 4;
    for (int k = 0; k < 4; ++k) {
      const Real distance = rest + static_cast<Real>(1 - k);
      result.weight[k] = cubic_weight(distance, a);
      result.slope[k] = cubic_slope(distance, a) * at.slope;
      const Real place = floor + static_cast<Real>(k - 1);
      result.index[k] = place == place ? element(std::nearbyint(brought_in({place, 0}, size).value), size) : 0;
    }
  }
};

// Strides of a grid (batch, spatial..., coordinate), indexed by output position.
struct Grid {
  int64_t batch, stride[kSpatial] = {0, 0, 0}, coordinate;
  Grid(const at::Tensor& grid, int spatial) : batch(grid.stride(0)), coordinate(grid.stride(-1)) {
    for (int d = 0; d < spatial; ++d) {
      stride[kSpatial - spatial + d] = grid.stride(1 + d);
    }
  }
  C10_HOST_DEVICE int64_t offset(const Place& o) const {
    return o.batch * batch + o.at[0] * stride[0] + o.at[1] * stride[1] + o.at[2] * stride[2];
  }
};

// The taps in all dimensions for one grid position; x is its first coordinate.
template <int spatial, typename Real, typename T>
struct PlaceTaps {
  Taps<Real> axes[kSpatial];
  __device__ PlaceTaps(const Sampler<Real>& sampler, const Volume& in, const T* grid, int64_t step) {
    for (int d = 0; d < spatial; ++d) {
      const int axis = kSpatial - 1 - d;
      axes[axis] = sampler.taps(static_cast<Real>(grid[d * step]), in.size[axis]);
    }
  }
  // Calls use(offset in the plane, z, y, x) for the taps inside the image.
  template <typename Use>
  __device__ C10_ALWAYS_INLINE void each(const Volume& in, const Use& use) const {
    const int depth = spatial == 3 ? axes[0].count : 1;
    for (int z = 0; z < depth; ++z) {
      for (int y = 0; y < axes[1].count; ++y) {
        for (int x = 0; x < axes[2].count; ++x) {
          if (axes[0].index[z] >= 0 && axes[1].index[y] >= 0 && axes[2].index[x] >= 0) {
            use(in.inside(axes[0].index[z], axes[1].index[y], axes[2].index[x]), z, y, x);
          }
        }
      }
    }
  }
};

// The grid positions: the output with a single channel.
Volume places_of(const Volume& out) {
  Volume places = out;
  places.channels = 1;
  return places;
}

template <int spatial>
at::Tensor sample(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation, int64_t padding, bool align) {
  at::DimVector shape{input.size(0), input.size(1)};
  for (int d = 0; d < spatial; ++d) {
    shape.push_back(grid.size(1 + d));
  }
  const at::Tensor out = aten::empty(shape, input.options());
  const Volume in(input, spatial), to(out, spatial), places = places_of(to);
  const Grid where(grid, spatial);
  MUSA_DISPATCH(input.scalar_type(), "grid_sampler", (MUSA_FLOATING), {
    const scalar_t* const from = input.const_data_ptr<scalar_t>();
    const scalar_t* const coordinates = grid.const_data_ptr<scalar_t>();
    scalar_t* const result = out.mutable_data_ptr<scalar_t>();
    const Sampler<op_t> sampler{static_cast<Interpolation>(interpolation), static_cast<Outside>(padding), align};
    for_each(places.count(), [=] __device__(int64_t i) {
      const Place o = places.place(i);
      const PlaceTaps<spatial, op_t, scalar_t> taps(sampler, in, coordinates + where.offset(o), where.coordinate);
      for (int64_t channel = 0; channel < in.channels; ++channel) {
        const scalar_t* const plane = from + o.batch * in.batch_stride + channel * in.channel_stride;
        op_t sum = 0;
        taps.each(in, [&](int64_t offset, int z, int y, int x) {
          const auto& axes = taps.axes;
          sum += static_cast<op_t>(plane[offset]) * (axes[0].weight[z] * axes[1].weight[y] * axes[2].weight[x]);
        });
        result[to.offset(o) + channel * to.channel_stride] = static_cast<scalar_t>(sum);
      }
    });
  });
  return out;
}

template <int spatial>
std::tuple<at::Tensor, at::Tensor> sample_gradient(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& grid, int64_t interpolation, int64_t padding,
    bool align, bool want_input) {
  at::DimVector shape(grid.sizes().slice(0, spatial + 1));
  shape.insert(shape.begin() + 1, input.size(1));
  musa_runtime::check_shape(
      spatial == 2 ? "grid_sampler_2d_backward" : "grid_sampler_3d_backward", "grad_output", gradient, shape);
  // Many positions add to the same input element, so atomics are used; half types accumulate in float.
  const bool half = input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16;
  at::Tensor grad_input;
  if (want_input) {
    at::globalContext().alertNotDeterministic(spatial == 2 ? "grid_sampler_2d_backward" : "grid_sampler_3d_backward");
    grad_input = aten::zeros_like(
        input,
        input.options().dtype(half ? at::kFloat : input.scalar_type()).memory_format(at::MemoryFormat::Contiguous));
  }
  const at::Tensor grad_grid = aten::empty_like(grid, at::MemoryFormat::Contiguous);
  const Volume in(input, spatial), out(gradient, spatial), places = places_of(out);
  const Volume into(want_input ? grad_input : input, spatial);
  const Grid where(grid, spatial), where_to(grad_grid, spatial);
  MUSA_DISPATCH(input.scalar_type(), "grid_sampler_backward", (MUSA_FLOATING), {
    const scalar_t* const from = input.const_data_ptr<scalar_t>();
    const scalar_t* const coordinates = grid.const_data_ptr<scalar_t>();
    const scalar_t* const given = gradient.const_data_ptr<scalar_t>();
    op_t* const sums = want_input ? grad_input.mutable_data_ptr<op_t>() : nullptr;
    scalar_t* const result = grad_grid.mutable_data_ptr<scalar_t>();
    const Sampler<op_t> sampler{static_cast<Interpolation>(interpolation), static_cast<Outside>(padding), align};
    for_each(places.count(), [=] __device__(int64_t i) {
      const Place o = places.place(i);
      const PlaceTaps<spatial, op_t, scalar_t> taps(sampler, in, coordinates + where.offset(o), where.coordinate);
      const scalar_t* const planes = from + o.batch * in.batch_stride;
      op_t by[kSpatial] = {0, 0, 0};
      taps.each(in, [&](int64_t offset, int z, int y, int x) {
        const auto& depth = taps.axes[0];
        const auto& height = taps.axes[1];
        const auto& width = taps.axes[2];
        const op_t weight = depth.weight[z] * height.weight[y] * width.weight[x];
        const int64_t place = into.inside(depth.index[z], height.index[y], width.index[x]);
        op_t value = 0; // sum over all channels
        for (int64_t channel = 0; channel < in.channels; ++channel) {
          const op_t g = static_cast<op_t>(given[out.offset(o) + channel * out.channel_stride]);
          value += g * static_cast<op_t>(planes[offset + channel * in.channel_stride]);
          if (sums != nullptr) {
            const int64_t plane = o.batch * into.batch_stride + channel * into.channel_stride;
            gpuAtomicAddNoReturn(sums + plane + place, g * weight);
          }
        }
        by[0] += value * depth.slope[z] * height.weight[y] * width.weight[x];
        by[1] += value * depth.weight[z] * height.slope[y] * width.weight[x];
        by[2] += value * depth.weight[z] * height.weight[y] * width.slope[x];
      });
      for (int d = 0; d < spatial; ++d) {
        result[where_to.offset(o) + d * where_to.coordinate] = static_cast<scalar_t>(by[kSpatial - 1 - d]);
      }
    });
  });
  return {half && want_input ? grad_input.to(input.scalar_type()) : grad_input, grad_grid};
}

void check(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation, int spatial) {
  at::native::check_grid_sampler_common(input, grid);
  if (spatial == 2) {
    at::native::check_grid_sampler_2d(input, grid);
  } else {
    at::native::check_grid_sampler_3d(input, grid, interpolation);
  }
  TORCH_CHECK(
      input.scalar_type() == grid.scalar_type(),
      "grid_sampler(): expected input and grid to have the same dtype, "
      "but got ",
      input.scalar_type(), " and ", grid.scalar_type());
}

} // namespace

at::Tensor grid_sampler_2d(
    const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
    bool align_corners) {
  check(input, grid, interpolation_mode, 2);
  return sample<2>(input, grid, interpolation_mode, padding_mode, align_corners);
}
at::Tensor grid_sampler_3d(
    const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
    bool align_corners) {
  check(input, grid, interpolation_mode, 3);
  return sample<3>(input, grid, interpolation_mode, padding_mode, align_corners);
}
std::tuple<at::Tensor, at::Tensor> grid_sampler_2d_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode,
    int64_t padding_mode, bool align_corners, std::array<bool, 2> output_mask) {
  check(input, grid, interpolation_mode, 2);
  return sample_gradient<2>(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask[0]);
}
std::tuple<at::Tensor, at::Tensor> grid_sampler_3d_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode,
    int64_t padding_mode, bool align_corners, std::array<bool, 2> output_mask) {
  check(input, grid, interpolation_mode, 3);
  return sample_gradient<3>(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask[0]);
}

} // namespace musa_ops_ported
