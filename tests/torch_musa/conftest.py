# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fixtures: torch.musa with one device or two, and installed packages that tests share."""

import pytest

from tests.harness.device import unavailable_reason
from tests.harness.installations import fork_server, shared_links


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


@pytest.fixture(scope="module")
def shared_packages(tmp_path_factory):
    """The packages that every `Installation` of a file links to."""
    return shared_links(tmp_path_factory.mktemp("shared") / "packages")


@pytest.fixture(scope="module")
def package_server(shared_packages):
    """A process that has them loaded, and forks one for each program of a test."""
    with fork_server(shared_packages) as server:
        yield server
