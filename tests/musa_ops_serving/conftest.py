# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime's fixtures and leak check."""

from __future__ import annotations

import pytest

from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too


@pytest.fixture
def ops(musa):
    """torch.ops.musa_serving, with the pack loaded."""
    import torch

    return torch.ops.musa_serving
