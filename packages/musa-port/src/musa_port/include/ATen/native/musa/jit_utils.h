// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Declares names that other headers use but never call. There is no run-time compilation, because MUSA has no NVRTC.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace at::musa::jit {

struct NvrtcFunction {
  void* function = nullptr;
};
struct KernelDescriptor {
  std::string name;
  c10::ScalarType f_inputs_type{};
};

template <class... Types, class... Arguments>
KernelDescriptor make_kernel_descriptor(Arguments&&...);
template <class... Arguments>
std::string generate_code(Arguments&&...);
template <class... Arguments>
std::string generate_reduction_code(Arguments&&...);
template <class... Arguments>
NvrtcFunction jit_pwise_function(Arguments&&...);
template <class... Arguments>
void launch_jitted_pwise_function(Arguments&&...);

} // namespace at::musa::jit
