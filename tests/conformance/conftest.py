# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Expectations, shares and the device for the conformance suites."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator

import pytest

from tests.conformance import expectations
from tests.conformance.results import provider_of
from tests.harness import parts
from tests.harness.device import DEVICE, unavailable_reason

# Only orders of providers with the ported pack promise CUDA's dtypes: torch's CPU kernels and muDNN take
# fewer.
collect_ignore = [] if "ported" in os.environ.get("TORCH_MUSA_OPS", "ported") else ["test_cuda_dtypes.py"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance(database, variant): one suite of the conformance run")


def _key(item: pytest.Item) -> tuple[str, str, str, str] | None:
    marker = item.get_closest_marker("conformance")
    if marker is None:
        return None
    database, variant = marker.args
    case = item.callspec.params["case"]
    return (database, case.name, variant, case.kind)


def _part_of(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """The cases that `--part` selects, and all other tests."""
    index, count = parts.chosen(config)
    cases = [item for item in items if _key(item) is not None]
    left_out = set(cases) - set(cases[index - 1 :: count])
    return [item for item in items if item not in left_out]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = _part_of(config, items)
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
    known = {entry.key: entry for entry in expectations.load()}
    for item in items:
        entry = known.get(_key(item))
        if entry is not None and entry.applies(config.getoption("--full"), provider_of):
            item.add_marker(pytest.mark.xfail(strict=True, reason=entry.cause))


@pytest.fixture(scope="session")
def device() -> str:
    """The device under test. Its absence is a failure: a conformance run without a device would prove
    nothing.
    """
    reason = unavailable_reason()
    if reason:
        pytest.fail(reason, pytrace=False)
    return DEVICE


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    # The operators emit deprecations and beta notices once per sample, which are not tested here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def count() -> Callable[[int], None]:
    """Call with the number of samples a test compared; none at all fails it."""

    def check(samples: int) -> None:
        if samples == 0:
            pytest.fail("no sample was compared: this test would prove nothing")

    return check
