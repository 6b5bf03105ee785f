// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <torch/headeronly/version.h>

#include <cstdint>

// All C++ differences between torch minors are in this file. Each wheel is built for one minor: the layouts of
// DeviceGuardImplInterface, DeviceStats and the allocators change between them.
#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 11
#error "musa-runtime needs the headers of torch 2.11 or later. Fix: pip install 'torch>=2.11,<2.16'"
#endif

// Tokens for torch 2.12 and later (`override` of functions and arguments that torch's interfaces have since then), and
// tokens for earlier minors.
#if TORCH_VERSION_MINOR >= 12
#define MUSA_SINCE_TORCH_2_12(...) __VA_ARGS__
#define MUSA_BEFORE_TORCH_2_12(...)
#else
#define MUSA_SINCE_TORCH_2_12(...)
#define MUSA_BEFORE_TORCH_2_12(...) __VA_ARGS__
#endif

// Until torch 2.12, meta functions name the dimensions of their outputs: the last parameter, and an argument for it.
#if __has_include(<ATen/core/Dimname.h>)
#define MUSA_NAMES_OF_DIMENSIONS , at::DimnameList
#define MUSA_NO_NAMES_OF_DIMENSIONS , at::DimnameList()
#else
#define MUSA_NAMES_OF_DIMENSIONS
#define MUSA_NO_NAMES_OF_DIMENSIONS
#endif

// Whether torch.accelerator.Graph exists, which drives an at::GraphImplInterface.
#if __has_include(<ATen/core/GraphImplInterface.h>)
#define MUSA_TORCH_HAS_ACCELERATOR_GRAPH 1
#else
#define MUSA_TORCH_HAS_ACCELERATOR_GRAPH 0
#endif

// The header that declares REGISTER_PRIVATEUSE1_PROFILER.
#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#define MUSA_PROFILER_REGISTRATION <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#else
#define MUSA_PROFILER_REGISTRATION <profiler/kineto_registration.h>
#endif

// The factor of ReduceOp.PREMUL_SUM, which torch renamed in 2.13.
#if TORCH_VERSION_MINOR >= 13
#define MUSA_PREMUL_SUM_SUPPLEMENT PreMulSumSupplement
#else
#define MUSA_PREMUL_SUM_SUPPLEMENT NCCLPreMulSumSupplement
#endif

namespace c10::musa {

// Until torch 2.12, dimensions of a tensor may have names.
template <typename Tensor>
bool has_names(const Tensor& tensor) {
  if constexpr (requires { tensor.has_names(); }) {
    return tensor.has_names();
  } else {
    return false;
  }
}

// DeviceStats counts private pools, and requests refused without trying, since torch 2.12.
template <typename Stats, typename Id, typename Figure>
void add_private_pool(Stats& stats, const Id& id, const Figure& reserved_bytes) {
  if constexpr (requires { stats.reserved_bytes_by_private_pools; }) {
    stats.reserved_bytes_by_private_pools[id] = reserved_bytes;
  }
}
template <typename Stats, typename Visit>
void for_each_private_pool(const Stats& stats, Visit visit) {
  if constexpr (requires { stats.reserved_bytes_by_private_pools; }) {
    for (const auto& [id, reserved_bytes] : stats.reserved_bytes_by_private_pools) {
      visit(id, reserved_bytes);
    }
  }
}
template <typename Stats>
int64_t rejected_requests(const Stats& stats) {
  if constexpr (requires { stats.num_oom_rejections; }) {
    return stats.num_oom_rejections;
  } else {
    return 0;
  }
}

} // namespace c10::musa
