# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The provider that serves an operator in this run."""

from __future__ import annotations

import torch

from tests.harness.device import DEVICE


def provider_of(operator: str) -> str:
    """The provider that serves an operator of the device under test."""
    return torch.musa.ops.explain(operator)["provider"] if DEVICE == "musa" else "cpu"
