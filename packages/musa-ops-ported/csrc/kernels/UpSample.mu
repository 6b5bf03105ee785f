// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Resampling of images. Every method is separable: along each dimension an output is a weighted sum of a few adjacent
// inputs, its taps. One kernel tabulates the taps, another sums over the tables of all dimensions, for every method.
// The gradient is the same sum over transposed tables, where the taps of an input are the outputs that it contributes
// to.
#include <ATen/core/Tensor.h>

#include <cmath>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels/UpSample.h"
#include "kernels/cubic.h"
#include "kernels/volume.h"

namespace musa_ops_ported {
namespace {

enum class Method { Nearest, NearestExact, Linear, Cubic };

struct Taps {
  int64_t first, count;
};

// A method along one dimension.
template <typename Real>
struct Axis {
  Method method = Method::Nearest;
  bool antialias = false, align = false;
  int64_t in = 1, out = 1;
  Real scale = 1; // inputs per output

  C10_HOST_DEVICE Real radius() const { return method == Method::Cubic ? 2 : 1; }
  // The filter's radius in inputs. An antialiasing filter covers all inputs between two outputs.
  C10_HOST_DEVICE Real support() const { return antialias && scale > 1 ? radius() * scale : radius(); }

  C10_HOST_DEVICE Real centre(int64_t o) const {
    return align ? scale * static_cast<Real>(o) : scale * (static_cast<Real>(o) + Real(0.5)) - Real(0.5);
  }

  // Computes the taps of output o: calls use(k, weight) for inputs first + k.
  template <typename Use>
  C10_HOST_DEVICE Taps taps(int64_t o, const Use& use) const {
    switch (method) {
      case Method::Nearest:
      case Method::NearestExact: return nearest_taps(o, use);
      case Method::Linear: return antialias ? wide_taps(o, use) : linear_taps(o, use);
      default: return antialias ? wide_taps(o, use) : cubic_taps(o, use);
    }
  }
  template <typename Use>
  C10_HOST_DEVICE Taps nearest_taps(int64_t o, const Use& use) const {
    // Computed in float32 for every dtype, so that ties break as in torch.
    const float shift = method == Method::NearestExact ? 0.5f : 0.0f;
    const auto at = static_cast<int64_t>(std::floor((static_cast<float>(o) + shift) * static_cast<float>(scale)));
    use(0, Real(1));
    return {at < in - 1 ? at : in - 1, 1};
  }
  template <typename Use>
  C10_HOST_DEVICE Taps linear_taps(int64_t o, const Use& use) const {
    const Real at = centre(o) > 0 ? centre(o) : Real(0);
    const auto floor = static_cast<int64_t>(std::floor(at));
    if (floor >= in - 1) {
      use(0, Real(1));
      return {in - 1, 1};
    }
    const Real rest = at - static_cast<Real>(floor);
    use(0, 1 - rest);
    use(1, rest);
    return {floor, 2};
  }
  template <typename Use>
  C10_HOST_DEVICE Taps cubic_taps(int64_t o, const Use& use) const {
    const Real at = centre(o);
    const auto floor = static_cast<int64_t>(std::floor(at));
    const Real rest = at - static_cast<Real>(floor);
    // Inputs outside the image are replaced by the border input, so their weights are added to it.
    const int64_t first = clamped(floor - 1), last = clamped(floor + 2);
    for (int64_t to = first; to <= last; ++to) {
      Real weight = 0;
      for (int k = -1; k <= 2; ++k) {
        weight += clamped(floor + k) == to ? cubic_weight<Real>(rest - static_cast<Real>(k), Real(-0.75)) : Real(0);
      }
      use(to - first, weight);
    }
    return {first, last - first + 1};
  }
  // A filter as wide as the distance between outputs, clipped at the border and normalized.
  template <typename Use>
  C10_HOST_DEVICE Taps wide_taps(int64_t o, const Use& use) const {
    const Real middle = scale * (static_cast<Real>(o) + Real(0.5));
    const auto begin = static_cast<int64_t>(middle - support() + Real(0.5));
    const auto end = static_cast<int64_t>(middle + support() + Real(0.5));
    const int64_t first = begin > 0 ? begin : 0, count = (end < in ? end : in) - first;
    const Real narrow = scale > 1 ? 1 / scale : Real(1);
    const auto weight = [&](int64_t k) {
      const Real x = (static_cast<Real>(first + k) - middle + Real(0.5)) * narrow;
      return method == Method::Cubic ? cubic_weight<Real>(x, Real(-0.5)) : std::abs(x) < 1 ? 1 - std::abs(x) : Real(0);
    };
    Real total = 0;
    for (int64_t k = 0; k < count; ++k) {
      total += weight(k);
    }
    for (int64_t k = 0; k < count; ++k) {
      use(k, total != 0 ? weight(k) / total : weight(k));
    }
    return {first, count};
  }
  C10_HOST_DEVICE int64_t clamped(int64_t at) const { return at < 0 ? 0 : at < in ? at : in - 1; }

  // A range that contains all outputs that may use input i. Border inputs also serve positions outside the image.
  C10_HOST_DEVICE Span takers(int64_t i) const {
    if (scale <= 0) {
      return {0, out};
    }
    const Real reach = support() + 2;
    const Real shift = align ? Real(0) : Real(0.5);
    const Real begin = (static_cast<Real>(i) - reach) / scale - shift - 1;
    const Real end = (static_cast<Real>(i) + reach) / scale + shift + 2;
    const Real most = static_cast<Real>(out);
    return {
        i == 0 || begin < 0 ? 0
            : begin < most  ? static_cast<int64_t>(begin)
                            : out,
        i == in - 1 || end > most ? out
            : end > 0             ? static_cast<int64_t>(end)
                                  : 0};
  }
  template <typename Use>
  C10_HOST_DEVICE Taps transposed_taps(int64_t i, const Use& use) const {
    const Span span = takers(i);
    int64_t first = span.end, last = span.begin - 1;
    for (int64_t o = span.begin; o < span.end; ++o) {
      const Taps its = taps(o, [](int64_t, Real) {});
      if (i >= its.first && i < its.first + its.count) {
        first = o < first ? o : first;
        last = o;
      }
    }
    for (int64_t o = first; o <= last; ++o) {
      const int64_t which = i - taps(o, [](int64_t, Real) {}).first;
      Real mine = 0;
      taps(o, [&](int64_t k, Real weight) { mine = k == which ? weight : mine; });
      use(o - first, mine);
    }
    return {first <= last ? first : 0, first <= last ? last - first + 1 : 0};
  }

  // An upper bound of the number of taps.
  int64_t most_taps() const { return std::min<int64_t>(in, static_cast<int64_t>(2 * support()) + 3); }
  int64_t most_transposed_taps() const {
    int64_t most = std::max(takers(0).end - takers(0).begin, takers(in - 1).end - takers(in - 1).begin);
    if (scale > 0) {
      most = std::max(most, static_cast<int64_t>(std::min(2 * (double(support()) + 2) / scale + 6, double(out))));
    }
    return std::min(most, out);
  }
};

// The tap tables of one dimension.
template <typename Real>
struct Table {
  Taps* taps = nullptr;
  Real* weights = nullptr;
  int64_t most = 1, results = 1;
};

template <typename Real>
struct Resampling {
  Axis<Real> axes[kSpatial];
  Table<Real> tables[kSpatial];
  at::Tensor memory;

  Resampling(
      Method method, bool antialias, bool align, int spatial, const Volume& in, const Volume& out,
      const std::optional<double>* scales) {
    for (int d = kSpatial - spatial; d < kSpatial; ++d) {
      Axis<Real>& axis = axes[d];
      axis.method = method;
      axis.antialias = antialias;
      axis.align = align;
      axis.in = in.size[d];
      axis.out = out.size[d];
      axis.scale = scale_of(axis, scales[d - (kSpatial - spatial)]);
    }
  }
  static Real scale_of(const Axis<Real>& axis, std::optional<double> given) {
    if (axis.align) {
      return axis.out > 1 ? static_cast<Real>(axis.in - 1) / static_cast<Real>(axis.out - 1) : Real(0);
    }
    if (axis.method == Method::Nearest && (axis.out == axis.in || axis.out == 2 * axis.in)) {
      return axis.out == axis.in ? Real(1) : Real(0.5);
    }
    const bool exact = given.has_value() && *given > 0;
    if (axis.method == Method::Nearest || axis.method == Method::NearestExact) {
      return exact ? static_cast<float>(1.0 / *given) : static_cast<float>(axis.in) / static_cast<float>(axis.out);
    }
    return exact ? static_cast<Real>(1.0 / *given) : static_cast<Real>(axis.in) / static_cast<Real>(axis.out);
  }

  void tabulate(bool transposed, const at::TensorOptions& options) {
    int64_t bytes = 0, total = 0;
    for (int d = 0; d < kSpatial; ++d) {
      tables[d].results = transposed ? axes[d].in : axes[d].out;
      tables[d].most = transposed ? axes[d].most_transposed_taps() : axes[d].most_taps();
      total += tables[d].results;
      bytes += tables[d].results * static_cast<int64_t>(sizeof(Taps) + tables[d].most * sizeof(Real));
    }
    memory = aten::empty({bytes + 64}, options.dtype(at::kByte).memory_format(at::MemoryFormat::Contiguous));
    char* free = static_cast<char*>(memory.mutable_data_ptr());
    for (auto& table : tables) {
      table.taps = reinterpret_cast<Taps*>(free);
      free += table.results * static_cast<int64_t>(sizeof(Taps));
    }
    for (auto& table : tables) {
      table.weights = reinterpret_cast<Real*>(free);
      free += table.results * table.most * static_cast<int64_t>(sizeof(Real));
    }
    const std::array<Axis<Real>, kSpatial> of{axes[0], axes[1], axes[2]};
    const std::array<Table<Real>, kSpatial> to{tables[0], tables[1], tables[2]};
    for_each(total, [=] __device__(int64_t i) {
      int d = 0;
      while (i >= to[d].results) {
        i -= to[d++].results;
      }
      Real* const weights = to[d].weights + i * to[d].most;
      const auto write = [&](int64_t k, Real weight) { weights[k] = weight; };
      to[d].taps[i] = transposed ? of[d].transposed_taps(i, write) : of[d].taps(i, write);
    });
  }
};

// The computation dtype: float for half types and bytes. Bytes occur only with nearest methods, which are exact.
template <typename T>
using WeightOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T, typename Real>
void sum_taps(const at::Tensor& from, const Resampling<Real>& how, int spatial, const at::Tensor& out) {
  const Volume in(from, spatial), to(out, spatial);
  const Table<Real> depth = how.tables[0], height = how.tables[1], width = how.tables[2];
  const T* const source = from.const_data_ptr<T>();
  T* const result = out.mutable_data_ptr<T>();
  for_each(to.count(), [=] __device__(int64_t i) {
    const Place o = to.place(i);
    const T* const plane = source + in.plane(o);
    const Taps zs = depth.taps[o.at[0]], ys = height.taps[o.at[1]], xs = width.taps[o.at[2]];
    const Real* const wz = depth.weights + o.at[0] * depth.most;
    const Real* const wy = height.weights + o.at[1] * height.most;
    const Real* const wx = width.weights + o.at[2] * width.most;
    Real sum = 0;
    for (int64_t z = 0; z < zs.count; ++z) {
      Real sheet = 0;
      for (int64_t y = 0; y < ys.count; ++y) {
        const T* const row = plane + in.inside(zs.first + z, ys.first + y, xs.first);
        Real line = 0;
        for (int64_t x = 0; x < xs.count; ++x) {
          line += wx[x] * static_cast<Real>(row[x * in.stride[2]]);
        }
        sheet += wy[y] * line;
      }
      sum += wz[z] * sheet;
    }
    result[to.offset(o)] = static_cast<T>(sum);
  });
}

struct How {
  Method method;
  bool align = false, antialias = false;
};
using Scales = std::initializer_list<std::optional<double>>;

void resample(How how, const at::Tensor& self, Scales scales, const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  const int spatial = static_cast<int>(scales.size());
  MUSA_DISPATCH(self.scalar_type(), "upsample", (MUSA_FLOATING, at::kByte), {
    Resampling<WeightOf<scalar_t>> tables(
        how.method, how.antialias, how.align, spatial, Volume(self, spatial), Volume(out, spatial), scales.begin());
    tables.tabulate(/*transposed=*/false, self.options());
    sum_taps<scalar_t>(self, tables, spatial, out);
  });
}

void resample_gradient(How how, const at::Tensor& gradient, Scales scales, const at::Tensor& grad_input) {
  if (grad_input.numel() == 0) {
    return;
  }
  const int spatial = static_cast<int>(scales.size());
  MUSA_DISPATCH(gradient.scalar_type(), "upsample_backward", (MUSA_FLOATING, at::kByte), {
    Resampling<WeightOf<scalar_t>> tables(
        how.method, how.antialias, how.align, spatial, Volume(grad_input, spatial), Volume(gradient, spatial),
        scales.begin());
    tables.tabulate(/*transposed=*/true, gradient.options());
    sum_taps<scalar_t>(gradient, tables, spatial, grad_input);
  });
}

} // namespace

using Scale = std::optional<double>;

void upsample_nearest1d(const at::Tensor& self, at::IntArrayRef output_size, Scale scales, const at::Tensor& out) {
  resample({Method::Nearest}, self, {scales}, out);
}
void upsample_nearest1d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, Scale scales,
    const at::Tensor& grad_input) {
  resample_gradient({Method::Nearest}, grad_output, {scales}, grad_input);
}
void upsample_nearest2d(
    const at::Tensor& self, at::IntArrayRef output_size, Scale scales_h, Scale scales_w, const at::Tensor& out) {
  resample({Method::Nearest}, self, {scales_h, scales_w}, out);
}
void upsample_nearest2d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, Scale scales_h,
    Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::Nearest}, grad_output, {scales_h, scales_w}, grad_input);
}
void upsample_nearest3d(
    const at::Tensor& self, at::IntArrayRef output_size, Scale scales_d, Scale scales_h, Scale scales_w,
    const at::Tensor& out) {
  resample({Method::Nearest}, self, {scales_d, scales_h, scales_w}, out);
}
void upsample_nearest3d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, Scale scales_d,
    Scale scales_h, Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::Nearest}, grad_output, {scales_d, scales_h, scales_w}, grad_input);
}
void _upsample_nearest_exact1d(
    const at::Tensor& self, at::IntArrayRef output_size, Scale scales, const at::Tensor& out) {
  resample({Method::NearestExact}, self, {scales}, out);
}
void _upsample_nearest_exact1d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, Scale scales,
    const at::Tensor& grad_input) {
  resample_gradient({Method::NearestExact}, grad_output, {scales}, grad_input);
}
void _upsample_nearest_exact2d(
    const at::Tensor& self, at::IntArrayRef output_size, Scale scales_h, Scale scales_w, const at::Tensor& out) {
  resample({Method::NearestExact}, self, {scales_h, scales_w}, out);
}
void _upsample_nearest_exact2d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, Scale scales_h,
    Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::NearestExact}, grad_output, {scales_h, scales_w}, grad_input);
}
void _upsample_nearest_exact3d(
    const at::Tensor& self, at::IntArrayRef output_size, Scale scales_d, Scale scales_h, Scale scales_w,
    const at::Tensor& out) {
  resample({Method::NearestExact}, self, {scales_d, scales_h, scales_w}, out);
}
void _upsample_nearest_exact3d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, Scale scales_d,
    Scale scales_h, Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::NearestExact}, grad_output, {scales_d, scales_h, scales_w}, grad_input);
}
void upsample_linear1d(
    const at::Tensor& self, at::IntArrayRef output_size, bool align_corners, Scale scales, const at::Tensor& out) {
  resample({Method::Linear, align_corners}, self, {scales}, out);
}
void upsample_linear1d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners,
    Scale scales, const at::Tensor& grad_input) {
  resample_gradient({Method::Linear, align_corners}, grad_output, {scales}, grad_input);
}
void upsample_bilinear2d(
    const at::Tensor& self, at::IntArrayRef output_size, bool align_corners, Scale scales_h, Scale scales_w,
    const at::Tensor& out) {
  resample({Method::Linear, align_corners}, self, {scales_h, scales_w}, out);
}
void upsample_bilinear2d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners,
    Scale scales_h, Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::Linear, align_corners}, grad_output, {scales_h, scales_w}, grad_input);
}
void upsample_trilinear3d(
    const at::Tensor& self, at::IntArrayRef output_size, bool align_corners, Scale scales_d, Scale scales_h,
    Scale scales_w, const at::Tensor& out) {
  resample({Method::Linear, align_corners}, self, {scales_d, scales_h, scales_w}, out);
}
void upsample_trilinear3d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners,
    Scale scales_d, Scale scales_h, Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::Linear, align_corners}, grad_output, {scales_d, scales_h, scales_w}, grad_input);
}
void upsample_bicubic2d(
    const at::Tensor& self, at::IntArrayRef output_size, bool align_corners, Scale scales_h, Scale scales_w,
    const at::Tensor& out) {
  resample({Method::Cubic, align_corners}, self, {scales_h, scales_w}, out);
}
void upsample_bicubic2d_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners,
    Scale scales_h, Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::Cubic, align_corners}, grad_output, {scales_h, scales_w}, grad_input);
}
void _upsample_bilinear2d_aa(
    const at::Tensor& self, at::IntArrayRef output_size, bool align_corners, Scale scales_h, Scale scales_w,
    const at::Tensor& out) {
  resample({Method::Linear, align_corners, /*antialias=*/true}, self, {scales_h, scales_w}, out);
}
void _upsample_bilinear2d_aa_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners,
    Scale scales_h, Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::Linear, align_corners, /*antialias=*/true}, grad_output, {scales_h, scales_w}, grad_input);
}
void _upsample_bicubic2d_aa(
    const at::Tensor& self, at::IntArrayRef output_size, bool align_corners, Scale scales_h, Scale scales_w,
    const at::Tensor& out) {
  resample({Method::Cubic, align_corners, /*antialias=*/true}, self, {scales_h, scales_w}, out);
}
void _upsample_bicubic2d_aa_backward(
    const at::Tensor& grad_output, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners,
    Scale scales_h, Scale scales_w, const at::Tensor& grad_input) {
  resample_gradient({Method::Cubic, align_corners, /*antialias=*/true}, grad_output, {scales_h, scales_w}, grad_input);
}

} // namespace musa_ops_ported
