# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors

import pytest

from tests.harness.device import unavailable_reason


@pytest.fixture
def musa():
    """The module torch.musa, with an available device."""
    reason = unavailable_reason()
    if reason:
        pytest.skip(reason)
    import torch

    return torch.musa


@pytest.fixture
def two_devices(musa):
    """The module torch.musa, with two available devices."""
    if musa.device_count() < 2:
        pytest.skip("needs two devices; the emulator has them with MUSA_EMULATOR_DEVICES=2")
    return musa
