# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A fixture that turns the switch on for one test."""

from __future__ import annotations

import pytest

import musa_as_cuda


@pytest.fixture
def as_cuda():
    with musa_as_cuda.enabled():
        yield
