// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

at::Tensor scaled_relu_forward(const at::Tensor& x, double scale);
