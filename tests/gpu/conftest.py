# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tests beside torch.cuda, on an NVIDIA GPU: `python3 tools/dev.py gpu` runs them."""

from __future__ import annotations

import os

import pytest
import torch

from tests.harness import skips


@pytest.fixture(autouse=True, scope="module")  # before the other fixtures of a module
def both_devices() -> None:
    if not torch.cuda.is_available() or "musa_cuda" not in os.environ.get("MUSA_HOME", ""):
        skips.skip_permanently("gpu")
    torch.empty(1, device="musa")
