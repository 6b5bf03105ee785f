# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Triton backend for the target "musa" on NVIDIA GPUs, for tests with musa-cuda: stock Triton's compiler
and launcher for CUDA, with the device, streams and tensors of torch.musa.

Triton finds the backend by the entry point of the distribution next to this package.
"""
