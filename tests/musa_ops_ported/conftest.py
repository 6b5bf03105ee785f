# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime suite's fixtures and leak check, with the pack first."""

from __future__ import annotations

import pytest
import torch

from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too


@pytest.fixture
def ported(musa):
    """The pack comes first, whatever TORCH_MUSA_OPS is."""
    with torch.musa.ops.prefer("*", "ported", "host-copy"):
        yield
