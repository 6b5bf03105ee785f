# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A function in C++ that computes with tensors, and its use on the device."""

import sys

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
torch::Tensor scaled(torch::Tensor x, double factor) {
  TORCH_CHECK(x.device().type() == torch::Device("cuda").type(), "x must be on the GPU");
  return x * factor;
}
"""
module = load_inline("sed_extension", SOURCE, functions=["scaled"], build_directory=sys.argv[1])
assert module.scaled(torch.ones(2, device="cuda"), 3.0).tolist() == [3.0, 3.0]
print("done")
