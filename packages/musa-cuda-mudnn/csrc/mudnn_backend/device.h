// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The compute device of tasks: a GPU, with torch's CUDA operators called through torch's dispatcher. The emulator's
// libmudnn compiles the same sources with its own header of this name.
#pragma once

#include <ATen/ATen.h>

#include "support/access.h"

namespace at::cpu {} // used by the shared sources

namespace musa_emulator::dnn {

// torch's operators under the names of at::cpu. Operators that exist only as tensor methods have no at:: function and
// are defined here.
namespace ops {

using namespace at;

#define MUDNN_METHOD(name) \
  template <class... Arguments> \
  at::Tensor& name(at::Tensor& self, const Arguments&... arguments) { \
    return self.name(arguments...); \
  } \
  template <class... Arguments> \
  at::Tensor& name(at::Tensor&& self, const Arguments&... arguments) { \
    return self.name(arguments...); \
  }
MUDNN_METHOD(add_)
MUDNN_METHOD(addcmul_)
MUDNN_METHOD(clamp_)
MUDNN_METHOD(exp_)
MUDNN_METHOD(fill_)
MUDNN_METHOD(index_add_)
MUDNN_METHOD(index_copy_)
MUDNN_METHOD(masked_fill_)
MUDNN_METHOD(masked_scatter_)
MUDNN_METHOD(mul_)
MUDNN_METHOD(neg_)
MUDNN_METHOD(round_)
MUDNN_METHOD(rsqrt_)
MUDNN_METHOD(scatter_)
MUDNN_METHOD(scatter_add_)
MUDNN_METHOD(sub_)
MUDNN_METHOD(triu_)
MUDNN_METHOD(zero_)
#undef MUDNN_METHOD

} // namespace ops

// Whether tasks address operands from the host.
inline constexpr bool kOnHost = false;
inline constexpr c10::DeviceType kDeviceType = c10::kCUDA;
inline constexpr c10::DispatchKey kDispatchKey = c10::DispatchKey::CUDA;
// The device of the call that is running on this thread.
c10::Device current_device();

inline at::TensorOptions options_of(c10::ScalarType type) { return at::TensorOptions(type).device(current_device()); }
inline at::Tensor new_tensor(c10::IntArrayRef sizes, c10::ScalarType type) {
  return at::empty(sizes, options_of(type));
}

// Copies a contiguous INT32 operand to the host into `copy`, and returns its data. Synchronizes the stream.
const int32_t* on_host(const musa::dnn::Tensor& numbers, at::Tensor& copy);

// 10 * major + minor of the MUSA architecture that kernels are compiled for (__MUSA_ARCH__ of mcc).
inline int arch_of(int /*index*/) { return 31; }

} // namespace musa_emulator::dnn
