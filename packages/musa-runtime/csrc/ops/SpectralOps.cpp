// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/fft_fft2_native.h>
#include <ATen/ops/fft_fft_native.h>
#include <ATen/ops/fft_fftn_native.h>
#include <ATen/ops/fft_hfft2_native.h>
#include <ATen/ops/fft_hfft_native.h>
#include <ATen/ops/fft_hfftn_native.h>
#include <ATen/ops/fft_ifft2_native.h>
#include <ATen/ops/fft_ifft_native.h>
#include <ATen/ops/fft_ifftn_native.h>
#include <ATen/ops/fft_ihfft2_native.h>
#include <ATen/ops/fft_ihfft_native.h>
#include <ATen/ops/fft_ihfftn_native.h>
#include <ATen/ops/fft_irfft2_native.h>
#include <ATen/ops/fft_irfft_native.h>
#include <ATen/ops/fft_irfftn_native.h>
#include <ATen/ops/fft_rfft2_native.h>
#include <ATen/ops/fft_rfft_native.h>
#include <ATen/ops/fft_rfftn_native.h>
#include <torch/library.h>

// torch.fft refuses float16 by the name of the device type: only cuda supports it. Here such a transform is computed in
// float32 and its result is rounded to half precision. Other dtypes use torch's implementation. Registered for the autograd
// key as well, because a kernel for the backend key alone would replace torch's differentiable composition.

namespace musa_runtime {
namespace {

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kComplexHalf;
}

at::Tensor in_single(const at::Tensor& tensor) {
  return tensor.to(tensor.is_complex() ? at::kComplexFloat : at::kFloat);
}

at::Tensor narrowed(const at::Tensor& tensor) { return tensor.to(tensor.is_complex() ? at::kComplexHalf : at::kHalf); }

template <auto transform>
struct Functional;
template <typename... Args, at::Tensor (*transform)(const at::Tensor&, Args...)>
struct Functional<transform> {
  static at::Tensor call(const at::Tensor& self, Args... args) {
    return is_half(self) ? narrowed(transform(in_single(self), args...)) : transform(self, args...);
  }
};

template <auto transform, auto into>
struct Out;
template <
    typename... Args, at::Tensor (*transform)(const at::Tensor&, Args...),
    at::Tensor& (*into)(const at::Tensor&, Args..., at::Tensor&)>
struct Out<transform, into> {
  static at::Tensor& call(const at::Tensor& self, Args... args, at::Tensor& out) {
    if (!is_half(self)) {
      return into(self, args..., out);
    }
    const at::Tensor result = narrowed(transform(in_single(self), args...));
    at::native::resize_output(out, result.sizes());
    return out.copy_(result);
  }
};

#define MUSA_FFT(NAME) \
  library.impl(#NAME, TORCH_FN((Functional<&at::native::NAME##_symint>::call))); \
  library.impl(#NAME ".out", TORCH_FN((Out<&at::native::NAME##_symint, &at::native::NAME##_symint_out>::call)));

void declare_transforms(torch::Library& library){
    MUSA_FFT(fft_fft) MUSA_FFT(fft_ifft) MUSA_FFT(fft_rfft) MUSA_FFT(fft_irfft) MUSA_FFT(fft_hfft) MUSA_FFT(fft_ihfft)
        MUSA_FFT(fft_fft2) MUSA_FFT(fft_ifft2) MUSA_FFT(fft_rfft2) MUSA_FFT(fft_irfft2) MUSA_FFT(fft_hfft2)
            MUSA_FFT(fft_ihfft2) MUSA_FFT(fft_fftn) MUSA_FFT(fft_ifftn) MUSA_FFT(fft_rfftn) MUSA_FFT(fft_irfftn)
                MUSA_FFT(fft_hfftn) MUSA_FFT(fft_ihfftn)}
#undef MUSA_FFT

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  declare_transforms(library);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) { declare_transforms(library); }

} // namespace
} // namespace musa_runtime
