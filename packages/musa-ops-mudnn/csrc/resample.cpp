// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Nearest, linear and cubic upsampling, and the gradients.
#include <ATen/ops/_upsample_bicubic2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bicubic2d_aa_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/upsample_bicubic2d_backward_meta.h>
#include <ATen/ops/upsample_bicubic2d_meta.h>
#include <ATen/ops/upsample_bilinear2d_backward_meta.h>
#include <ATen/ops/upsample_bilinear2d_meta.h>
#include <ATen/ops/upsample_linear1d_backward_meta.h>
#include <ATen/ops/upsample_linear1d_meta.h>
#include <ATen/ops/upsample_nearest1d_backward_meta.h>
#include <ATen/ops/upsample_nearest1d_meta.h>
#include <ATen/ops/upsample_nearest2d_backward_meta.h>
#include <ATen/ops/upsample_nearest2d_meta.h>
#include <ATen/ops/upsample_nearest3d_backward_meta.h>
#include <ATen/ops/upsample_nearest3d_meta.h>
#include <ATen/ops/upsample_trilinear3d_backward_meta.h>
#include <ATen/ops/upsample_trilinear3d_meta.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

using ResampleMode = dnn::Interpolate::Mode;

constexpr bool is_nearest(ResampleMode mode) {
  return mode == ResampleMode::NEAREST || mode == ResampleMode::NEAREST_EXACT;
}

// muDNN computes positions in float, as torch does for nearest with every dtype; torch computes linear and cubic
// positions of DOUBLE in double.
constexpr Dtypes types_of(ResampleMode mode) { return is_nearest(mode) ? float_types : matrix_types; }

// The operators' arguments after the sizes: align_corners, the scales, and for kernels the output.
struct Rest {
  bool align = false;
  std::array<std::optional<double>, 3> scales;
  int count = 0;
  const at::Tensor* out = nullptr;

  template <typename... Args>
  explicit Rest(const Args&... args) {
    (take(args), ...);
  }
  void take(bool value) { align = value; }
  void take(const std::optional<double>& scale) { scales[static_cast<size_t>(count++)] = scale; }
  void take(const at::Tensor& tensor) { out = &tensor; }

  // Returns the scales to pass to muDNN: input size / output size for the forward pass, output size / input size for
  // the gradient.
  std::array<float, 3> factors(ResampleMode mode, at::IntArrayRef from, at::IntArrayRef to, bool forward) const {
    std::array<float, 3> result{};
    for (size_t i = 0; i < from.size(); ++i) {
      const auto in = static_cast<float>(from[i]);
      const auto out_size = static_cast<float>(to[i]);
      const bool given = gives_scale(i) && (is_nearest(mode) || !align);
      result[i] = given ? static_cast<float>(forward ? 1.0 / *scales[i] : *scales[i])
                        : (forward ? in / out_size : out_size / in);
    }
    return result;
  }
  bool gives_scale(size_t i) const {
    return scales[i].has_value() && *scales[i] > 0; // as in torch, other values mean that no scale is given
  }
};

// Whether the sizes are valid and no position is outside the input.
bool fits(ResampleMode mode, at::IntArrayRef from, at::IntArrayRef to, const Rest& rest, bool forward) {
  if (from.size() != static_cast<size_t>(rest.count) || to.size() != from.size()) {
    return false;
  }
  const auto positive = [](int64_t size) { return size > 0; };
  if (!std::all_of(from.begin(), from.end(), positive) || !std::all_of(to.begin(), to.end(), positive)) {
    return false;
  }
  const std::array<float, 3> factors = rest.factors(mode, from, to, forward);
  for (size_t i = 0; i < from.size(); ++i) {
    const double factor = factors[i];
    const double scale = forward ? 1.0 / factor : factor;
    if (!(factor > 0) || !std::isfinite(factor) ||
        (rest.gives_scale(i) && static_cast<double>(to[i] - 1) / scale >= static_cast<double>(from[i]))) {
      return false;
    }
  }
  return true;
}

template <bool forward>
void run(ResampleMode mode, bool antialias, const at::Tensor& out, const at::Tensor& in, const Rest& rest) {
  const at::Tensor& large = forward ? out : in; // the upsampled tensor, or its gradient
  const at::Tensor& small = forward ? in : out;
  const auto factors = rest.factors(mode, small.sizes().slice(2), large.sizes().slice(2), forward);
  dnn::Interpolate op;
  check(op.SetMode(mode), "Interpolate::SetMode");
  check(op.SetAntialias(antialias), "Interpolate::SetAntialias");
  check(op.SetAlignCorners(rest.align), "Interpolate::SetAlignCorners");
  switch (rest.count) {
    case 1: check(op.SetScaleInfo({factors[0]}), "Interpolate::SetScaleInfo"); break;
    case 2: check(op.SetScaleInfo({factors[0], factors[1]}), "Interpolate::SetScaleInfo"); break;
    default: check(op.SetScaleInfo({factors[0], factors[1], factors[2]}), "Interpolate::SetScaleInfo");
  }
  // muDNN supports channels-first formats only.
  const at::Tensor source = in.contiguous();
  const bool direct = out.is_contiguous();
  const at::Tensor target = direct ? out : at::empty(out.sizes(), out.options());
  const OnDevice on(target);
  dnn::Tensor result = describe_channels(target, at::MemoryFormat::Contiguous);
  const dnn::Tensor values = describe_channels(source, at::MemoryFormat::Contiguous, kRead);
  if constexpr (forward) {
    check(op.Run(on.handle(), result, values), "Interpolate::Run", {&target, &source});
  } else {
    check(op.RunBackward(on.handle(), result, values), "Interpolate::RunBackward", {&target, &source});
  }
  if (!direct) {
    convert(out, target);
  }
}

template <ResampleMode mode, bool antialias>
inline constexpr auto resample = [](const at::Tensor& self, at::IntArrayRef /*size*/, const auto&... args) -> void {
  const Rest rest(args...);
  if (rest.out->numel() > 0) {
    run<true>(mode, antialias, *rest.out, self, rest);
  }
};

template <ResampleMode mode>
inline constexpr auto resample_served = [](const at::Tensor& self, at::IntArrayRef size, const auto&... args) -> bool {
  constexpr Dtypes types = types_of(mode) | (is_nearest(mode) ? one(at::kByte) : 0);
  const Rest rest(args...);
  return serves<types>(self) && self.dim() == rest.count + 2 &&
      fits(mode, self.sizes().slice(2), size, rest, /*forward=*/true);
};

template <ResampleMode mode, bool antialias>
inline constexpr auto resample_backward =
    [](const at::Tensor& grad, at::IntArrayRef /*size*/, at::IntArrayRef /*input_size*/, const auto&... args) -> void {
  const Rest rest(args...);
  if (rest.out->numel() > 0) {
    run<false>(mode, antialias, *rest.out, grad, rest);
  }
};

// Several output elements are added to one input element in an undocumented order.
template <ResampleMode mode>
inline constexpr auto resample_backward_served =
    [](const at::Tensor& grad, at::IntArrayRef size, at::IntArrayRef input_size, const auto&... args) -> bool {
  const Rest rest(args...);
  return serves<types_of(mode)>(grad) && !must_repeat() && grad.dim() == rest.count + 2 &&
      input_size.size() == static_cast<size_t>(grad.dim()) && grad.sizes().slice(2) == size &&
      grad.sizes().slice(0, 2) == input_size.slice(0, 2) &&
      fits(mode, input_size.slice(2), size, rest, /*forward=*/false);
};

template <typename Meta, typename MetaBackward, ResampleMode mode, bool antialias = false>
void upsample(OpPack& pack, Names names, Names backward) {
  structured<Meta, resample<mode, antialias>, resample_served<mode>>(pack, names);
  structured<MetaBackward, resample_backward<mode, antialias>, resample_backward_served<mode>>(pack, backward);
}

} // namespace

// Derives all names of an operator from one.
#define MUSA_UPSAMPLE(NAME, ...) \
  upsample<at::meta::structured_##NAME, at::meta::structured_##NAME##_backward, __VA_ARGS__>( \
      pack, {"aten::" #NAME, "aten::" #NAME ".out"}, \
      {"aten::" #NAME "_backward", "aten::" #NAME "_backward.grad_input"})

void declare_resample(OpPack& pack) {
  MUSA_UPSAMPLE(upsample_nearest1d, ResampleMode::NEAREST);
  MUSA_UPSAMPLE(upsample_nearest2d, ResampleMode::NEAREST);
  MUSA_UPSAMPLE(upsample_nearest3d, ResampleMode::NEAREST);
  MUSA_UPSAMPLE(_upsample_nearest_exact1d, ResampleMode::NEAREST_EXACT);
  MUSA_UPSAMPLE(_upsample_nearest_exact2d, ResampleMode::NEAREST_EXACT);
  MUSA_UPSAMPLE(_upsample_nearest_exact3d, ResampleMode::NEAREST_EXACT);
  MUSA_UPSAMPLE(upsample_linear1d, ResampleMode::LINEAR);
  MUSA_UPSAMPLE(upsample_bilinear2d, ResampleMode::LINEAR);
  MUSA_UPSAMPLE(upsample_trilinear3d, ResampleMode::LINEAR);
  MUSA_UPSAMPLE(upsample_bicubic2d, ResampleMode::BICUBIC);
  MUSA_UPSAMPLE(_upsample_bilinear2d_aa, ResampleMode::LINEAR, /*antialias=*/true);
  MUSA_UPSAMPLE(_upsample_bicubic2d_aa, ResampleMode::BICUBIC, /*antialias=*/true);
}

#undef MUSA_UPSAMPLE

} // namespace musa_ops_mudnn
