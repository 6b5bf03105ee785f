// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// cuDNN convolutions that write to the caller's memory. The forward direction is a torch operator. The gradients are
// C++ functions of torch without an operator, which are looked up by symbol name; if a torch version lacks them, its
// operator is used and the caller copies the result.
#include <dlfcn.h>
#include <mudnn_backend/lending.h>

namespace musa_emulator::dnn {
namespace {

using Gradient = void (*)(
    const at::Tensor&, const at::Tensor&, const at::Tensor&, c10::IntArrayRef, c10::IntArrayRef, c10::IntArrayRef,
    int64_t, bool, bool, bool);

Gradient find(const char* name) {
  void* const library = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
  return library != nullptr ? reinterpret_cast<Gradient>(dlsym(library, name)) : nullptr;
}

struct Settings {
  const at::Context& context = at::globalContext();
  bool benchmark = context.benchmarkCuDNN();
  bool deterministic = context.deterministicCuDNN() || context.deterministicAlgorithms();
  bool allow_tf32 = context.allowTF32CuDNN(at::Float32Op::CONV); // set from the handle in call.cpp
};

// Grouped convolutions are left to torch, which has special kernels for some of them.
bool serves(const at::Tensor& result, int64_t groups) {
  return groups == 1 && at::globalContext().userEnabledCuDNN() &&
      (result.scalar_type() == at::kFloat || at::isReducedFloatingType(result.scalar_type())) &&
      result.is_contiguous(result.suggest_memory_format());
}

bool gradient_into(
    Gradient function, at::Tensor& result, const at::Tensor& grad_out, const at::Tensor& other, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups) {
  if (function == nullptr || !serves(result, groups)) {
    return false;
  }
  // cuDNN needs one memory format for all three tensors.
  const auto format = other.suggest_memory_format() == at::MemoryFormat::Contiguous ? grad_out.suggest_memory_format()
                                                                                    : other.suggest_memory_format();
  if (!result.is_contiguous(format)) {
    return false;
  }
  const Settings settings;
  function(
      result, grad_out.contiguous(format), other.contiguous(format), pad, stride, dilation, groups, settings.benchmark,
      settings.deterministic, settings.allow_tf32);
  return true;
}

} // namespace

bool convolve_into(
    at::Tensor& out, const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups) {
  if (!serves(out, groups)) {
    return false;
  }
  const Settings settings;
  at::cudnn_convolution_out(
      out, in, weight, pad, stride, dilation, groups, settings.benchmark, settings.deterministic, settings.allow_tf32);
  if (bias.defined()) {
    std::vector<int64_t> shape(static_cast<size_t>(out.dim()), 1);
    shape[1] = bias.numel();
    out.add_(bias.view(shape));
  }
  return true;
}

bool input_gradient_into(
    at::Tensor& grad_in, const at::Tensor& grad_out, const at::Tensor& weight, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups) {
  static const Gradient function =
      find("_ZN2at6native40raw_cudnn_convolution_backward_input_outERKNS_6TensorES3_S3_N3c108ArrayRefIlEES6_S6_lbbb");
  return gradient_into(function, grad_in, grad_out, weight, pad, stride, dilation, groups);
}

bool filter_gradient_into(
    at::Tensor& grad_weight, const at::Tensor& grad_out, const at::Tensor& in, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups) {
  static const Gradient function =
      find("_ZN2at6native41raw_cudnn_convolution_backward_weight_outERKNS_6TensorES3_S3_N3c108ArrayRefIlEES6_S6_lbbb");
  return gradient_into(function, grad_weight, grad_out, in, pad, stride, dilation, groups);
}

} // namespace musa_emulator::dnn
