// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Interpolate.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/_upsample_bicubic2d_aa_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_bicubic2d_aa_cpu_dispatch.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_bilinear2d_aa_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact1d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact2d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact3d_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/upsample_bicubic2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_bicubic2d_cpu_dispatch.h>
#include <ATen/ops/upsample_bilinear2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_bilinear2d_cpu_dispatch.h>
#include <ATen/ops/upsample_linear1d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_linear1d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest1d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest1d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest2d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest3d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest3d_cpu_dispatch.h>
#include <ATen/ops/upsample_trilinear3d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_trilinear3d_cpu_dispatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using Mode = Interpolate::Mode;
using Type = Tensor::Type;

// Scales as torch's functions take them: output size / input size; nullopt if derived from the sizes.
using Scales = std::array<std::optional<double>, 3>;

struct Resampling {
  Mode mode;
  bool antialias;
  bool align;
  Scales scales;

  bool nearest() const { return mode == Mode::NEAREST || mode == Mode::NEAREST_EXACT; }
};

// Derives the scales from the sizes of both operands. Returns false if a check fails.
bool fit(
    Call& call, Resampling& resampling, const std::vector<float>& scales, bool forward, const Tensor& before,
    const Tensor& after) {
  using Format = Tensor::Format;
  if (!call.require(
          TensorAccess::present(before) && TensorAccess::present(after), Status::INVALID_PARAMETER,
          "an operand is absent") ||
      !call.require(
          has_type(before, {TensorAccess::type(after)}), Status::INVALID_PARAMETER, "the operands differ in type")) {
    return false;
  }
  const auto planar = [](const Tensor& tensor) {
    const Format format = TensorAccess::format(tensor);
    return (format == Format::UNKNOWN || format == Format::NCW || format == Format::NCHW || format == Format::NCDHW) &&
        TensorAccess::contiguous(tensor);
  };
  const int ndim = TensorAccess::ndim(before);
  const int space = ndim - 2;
  const int64_t* const from = TensorAccess::dims(before);
  const int64_t* const to = TensorAccess::dims(after);
  if (!call.require(
          planar(before) && planar(after), Status::NOT_SUPPORTED,
          "an operand is not contiguous in a channels-first format") ||
      !call.require(
          space >= 1 && space <= 3 && TensorAccess::ndim(after) == ndim && std::equal(from, from + 2, to),
          Status::INVALID_PARAMETER, "the operands differ in batch, channels or dimensions") ||
      !call.require(
          scales.empty() || static_cast<int>(scales.size()) == space, Status::INVALID_PARAMETER,
          "the number of scales is not that of the spatial dimensions") ||
      !call.require(
          space == 2 || resampling.mode != Mode::BICUBIC, Status::NOT_SUPPORTED,
          "bicubic mode is supported in two dimensions only") ||
      !call.require(
          !resampling.antialias || (space == 2 && !resampling.nearest()), Status::NOT_SUPPORTED,
          "antialiasing is supported for linear and bicubic modes in two dimensions only") ||
      !call.require(
          has_type(before, {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE}) ||
              (forward && resampling.nearest() && has_type(before, {Type::UINT8})),
          Status::NOT_SUPPORTED, "the mode does not support this type")) {
    return false;
  }
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto in = static_cast<float>(from[i + 2]);
    const auto out = static_cast<float>(to[i + 2]);
    const bool corners = resampling.align && !resampling.nearest(); // the sizes alone determine the positions
    if (corners || scales[i] == (forward ? in / out : out / in)) {
      continue;
    }
    const double scale = forward ? 1.0 / static_cast<double>(scales[i]) : static_cast<double>(scales[i]);
    // Otherwise the last elements would be read from outside the input.
    if (!call.require(
            (out - 1) / scale < in, Status::INVALID_PARAMETER,
            "a scale does not match the sizes, or is the reciprocal")) {
      return false;
    }
    resampling.scales[i] = scale;
  }
  return true;
}

void resample(const Resampling& r, at::Tensor& out, const at::Tensor& in) {
  const auto size = out.sizes().slice(2);
  const auto& [s0, s1, s2] = r.scales;
  const bool exact = r.mode == Mode::NEAREST_EXACT;
  switch (size.size()) {
    case 1:
      if (r.mode == Mode::LINEAR) {
        ops::upsample_linear1d_out(out, in, size, r.align, s0);
      } else if (exact) {
        ops::_upsample_nearest_exact1d_out(out, in, size, s0);
      } else {
        ops::upsample_nearest1d_out(out, in, size, s0);
      }
      return;
    case 2:
      if (r.mode == Mode::LINEAR && r.antialias) {
        ops::_upsample_bilinear2d_aa_out(out, in, size, r.align, s0, s1);
      } else if (r.mode == Mode::LINEAR) {
        ops::upsample_bilinear2d_out(out, in, size, r.align, s0, s1);
      } else if (r.mode == Mode::BICUBIC && r.antialias) {
        ops::_upsample_bicubic2d_aa_out(out, in, size, r.align, s0, s1);
      } else if (r.mode == Mode::BICUBIC) {
        ops::upsample_bicubic2d_out(out, in, size, r.align, s0, s1);
      } else if (exact) {
        ops::_upsample_nearest_exact2d_out(out, in, size, s0, s1);
      } else {
        ops::upsample_nearest2d_out(out, in, size, s0, s1);
      }
      return;
    default:
      if (r.mode == Mode::LINEAR) {
        ops::upsample_trilinear3d_out(out, in, size, r.align, s0, s1, s2);
      } else if (exact) {
        ops::_upsample_nearest_exact3d_out(out, in, size, s0, s1, s2);
      } else {
        ops::upsample_nearest3d_out(out, in, size, s0, s1, s2);
      }
  }
}

void resample_backward(const Resampling& r, at::Tensor& grad_in, const at::Tensor& grad_out) {
  const auto size = grad_out.sizes().slice(2);
  const auto shape = grad_in.sizes();
  const auto& [s0, s1, s2] = r.scales;
  const bool exact = r.mode == Mode::NEAREST_EXACT;
  switch (size.size()) {
    case 1:
      if (r.mode == Mode::LINEAR) {
        ops::upsample_linear1d_backward_out(grad_in, grad_out, size, shape, r.align, s0);
      } else if (exact) {
        ops::_upsample_nearest_exact1d_backward_out(grad_in, grad_out, size, shape, s0);
      } else {
        ops::upsample_nearest1d_backward_out(grad_in, grad_out, size, shape, s0);
      }
      return;
    case 2:
      if (r.mode == Mode::LINEAR && r.antialias) {
        ops::_upsample_bilinear2d_aa_backward_out(grad_in, grad_out, size, shape, r.align, s0, s1);
      } else if (r.mode == Mode::LINEAR) {
        ops::upsample_bilinear2d_backward_out(grad_in, grad_out, size, shape, r.align, s0, s1);
      } else if (r.mode == Mode::BICUBIC && r.antialias) {
        ops::_upsample_bicubic2d_aa_backward_out(grad_in, grad_out, size, shape, r.align, s0, s1);
      } else if (r.mode == Mode::BICUBIC) {
        ops::upsample_bicubic2d_backward_out(grad_in, grad_out, size, shape, r.align, s0, s1);
      } else if (exact) {
        ops::_upsample_nearest_exact2d_backward_out(grad_in, grad_out, size, shape, s0, s1);
      } else {
        ops::upsample_nearest2d_backward_out(grad_in, grad_out, size, shape, s0, s1);
      }
      return;
    default:
      if (r.mode == Mode::LINEAR) {
        ops::upsample_trilinear3d_backward_out(grad_in, grad_out, size, shape, r.align, s0, s1, s2);
      } else if (exact) {
        ops::_upsample_nearest_exact3d_backward_out(grad_in, grad_out, size, shape, s0, s1, s2);
      } else {
        ops::upsample_nearest3d_backward_out(grad_in, grad_out, size, shape, s0, s1, s2);
      }
  }
}

// torch's antialiasing supports FLOAT and DOUBLE only.
template <class Function>
void run(Function function, const Resampling& resampling, const Tensor& target, const Tensor& source) {
  at::Tensor result = alias(target);
  const at::Tensor values = alias(source);
  if (!resampling.antialias || result.scalar_type() == at::kFloat || result.scalar_type() == at::kDouble) {
    const Outputs given(result);
    function(resampling, result, values);
    given.keep();
    return;
  }
  at::Tensor wide_result = new_tensor(result.sizes(), at::kFloat);
  at::Tensor wide_values = new_tensor(values.sizes(), at::kFloat);
  at::native::copy_(wide_values, values);
  function(resampling, wide_result, wide_values);
  at::native::copy_(result, wide_result);
}

} // namespace

Status Interpolate::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Interpolate::SetAntialias(bool antialias) {
  antialias_ = antialias;
  return Status::SUCCESS;
}

Status Interpolate::SetAlignCorners(bool align) {
  align_corners_ = align;
  return Status::SUCCESS;
}

Status Interpolate::SetScaleInfo(std::initializer_list<float> scales) {
  return SetScaleInfo(static_cast<int>(scales.size()), scales.begin());
}

Status Interpolate::SetScaleInfo(int count, const float* scales) {
  if (count < 1 || count > 3 || scales == nullptr ||
      !std::all_of(scales, scales + count, [](float scale) { return scale > 0 && std::isfinite(scale); })) {
    return Status::INVALID_PARAMETER;
  }
  scales_.assign(scales, scales + count);
  return Status::SUCCESS;
}

Status Interpolate::Run(Handle& handle, Tensor& out, const Tensor& in) const {
  return call<"musa::dnn::Interpolate::Run">(handle, {&out, &in}, [&](Call& call) {
    Resampling resampling{mode_, antialias_, align_corners_, {}};
    if (!fit(call, resampling, scales_, true, in, out)) {
      return call.status();
    }
    return call.enqueue([resampling, out = out, in = in] { run(resample, resampling, out, in); });
  });
}

Status Interpolate::RunBackward(Handle& handle, Tensor& grad_in, const Tensor& grad_out) const {
  return call<"musa::dnn::Interpolate::RunBackward">(handle, {&grad_in, &grad_out}, [&](Call& call) {
    Resampling resampling{mode_, antialias_, align_corners_, {}};
    if (!fit(call, resampling, scales_, false, grad_in, grad_out)) {
      return call.status();
    }
    return call.enqueue([resampling, grad_in = grad_in, grad_out = grad_out] {
      run(resample_backward, resampling, grad_in, grad_out);
    });
  });
}

} // namespace musa::dnn
