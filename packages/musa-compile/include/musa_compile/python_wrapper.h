// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

// Included by torch.compile's C++ wrappers (config.cpp_wrapper), which are Python extension modules. They release the
// GIL around kernels and operators, because pending work on the stream may be a Python function.
#include <torch/csrc/inductor/cpp_wrapper/common.h>

#include "host_kernel.h"
