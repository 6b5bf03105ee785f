# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fixtures of the suites for the device under test, and the leak check around each of their tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import emulator as emulator_api
from tests.harness import leaks, peers, skips

__all__ = [  # the names that the packs' suites import
    "_host_addressable",
    "_no_leak",
    "device",
    "emulator",
    "musa",
    "pytest_runtest_makereport",
    "two_devices",
]


def _require_device() -> str:
    from tests.harness.device import DEVICE, unavailable_reason

    reason = unavailable_reason()
    if reason:
        pytest.fail(reason, pytrace=False)
    return DEVICE


@pytest.fixture
def device() -> str:
    """The type of the device under test. Its absence fails the test instead of skipping it."""
    return _require_device()


@pytest.fixture
def musa():
    """The initialised module torch.musa, for tests that need a musa device."""
    if _require_device() == "cpu":
        pytest.skip("MUSA_TEST_DEVICE=cpu debugs the harness; this test needs the device itself")
    import torch

    torch.musa.init()
    return torch.musa


@pytest.fixture
def two_devices(musa):
    """The module torch.musa, with at least two devices."""
    if musa.device_count() < 2:
        pytest.skip("needs two devices; the emulator makes them with MUSA_EMULATOR_DEVICES=2")
    return musa


@pytest.fixture
def emulator(musa) -> Iterator[emulator_api.Emulator]:
    """The emulator's C API, without injected faults before and after the test."""
    emulator = emulator_api.emulator_or_skip()
    emulator.clear_faults()
    yield emulator
    emulator.clear_faults()


@pytest.fixture(scope="module")
def shared_peer() -> Iterator[peers.Peer]:
    import torch

    torch.musa.init()
    peer = peers.Peer()
    yield peer
    assert peer.close() == 0


@pytest.fixture
def peer(musa, shared_peer) -> Iterator[peers.Peer]:
    """Another process, which holds no tensors before and after the test."""
    shared_peer.call(peers.drop)
    yield shared_peer
    shared_peer.call(peers.drop)
    musa.ipc_collect()


_PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> pytest.TestReport:
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(autouse=True)
def _no_leak(request: pytest.FixtureRequest) -> Iterator[None]:
    # Checked only for tests that use the device, so that the others do not pay for it.
    if "device" in request.fixturenames or "musa" in request.fixturenames:
        _require_device()
        # A failed test's traceback still holds its tensors, which would be reported as a leak.
        with leaks.no_leak(unless=lambda: not request.node.stash.get(_PASSED, False)):
            yield
            # Otherwise pytest would hold the values of the test's fixtures during the check.
            request.node.funcargs.clear()
    else:
        yield


@pytest.fixture(autouse=True)
def _host_addressable(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("host_addressable")
    if marker:
        [reason] = marker.args
        from tests.harness.device import host_can_address_device_memory

        if not host_can_address_device_memory():
            skips.skip_permanently("host-addressable", reason)
