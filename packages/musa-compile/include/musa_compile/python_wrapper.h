// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

// Included by the C++ wrappers of torch.compile (config.cpp_wrapper), which are Python extension modules. They run kernels and
// operators without the GIL, so pending work on the stream may be a function in Python.
#include <torch/csrc/inductor/cpp_wrapper/common.h>

#include "host_kernel.h"
