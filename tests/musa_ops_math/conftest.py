# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime suite's fixtures and leak check."""

import pytest

from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too


@pytest.fixture
def served(musa):
    """Fails if an operator is computed on copies in host memory."""
    from tests.harness.device import computes_float64

    musa.ops.set_fallback_mode("error" if computes_float64() else "allow")
    yield
    musa.ops.set_fallback_mode("warn")
