// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// For torch 2.11, which has no registry for the profiler of another device: Kineto's is used.
#pragma once

#include <libkineto.h>

#include <memory>

#define REGISTER_PRIVATEUSE1_PROFILER(Profiler) \
  [[maybe_unused]] const bool profiler_is_registered = [] { \
    libkineto::api().registerProfilerFactory([] { return std::make_unique<Profiler>(); }); \
    return true; \
  }()
