# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Helpers of the pack's tests: comparison of results, and code for processes of their own."""

from __future__ import annotations

import torch

# A program in a process of its own takes the suite's cache folder from the environment, and compiles on one
# thread. The environment variable for the latter is read while torch is imported, so it would cost an
# interpreter.
ONE_THREAD = """
import torch
import torch._inductor.config
torch._inductor.config.compile_threads = 1
"""


def assert_same(actual: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-4) -> None:
    """Compare two tensors on any devices; the dtypes and shapes must be equal too."""
    torch.testing.assert_close(actual.detach().cpu(), expected.detach().cpu(), rtol=tolerance, atol=tolerance)


def scaled(x: torch.Tensor) -> torch.Tensor:
    """A pointwise function, for tests that need any compiled function: its kernel is compiled once."""
    return (x * 2 + 1).relu()
