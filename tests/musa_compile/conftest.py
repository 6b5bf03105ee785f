# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime's fixtures and leak check; a fresh compiler for each test; samples of the sweeps.

A run without --full compiles about a dozen functions with Inductor: each costs the C++ compiler seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.harness import skips
from tests.musa_compile.known_failures import KNOWN_FAILURES
from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too

BACKENDS = ("eager", "aot_eager", "inductor")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "compiled: a program whose form with Inductor is part of each run, not of --full alone"
    )
    config.addinivalue_line("markers", "inductor: skipped if Inductor has no kernel generator for the device")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", BACKENDS)


@pytest.hookimpl(tryfirst=True)  # before tests/conftest.py leaves out the tests that are marked with `full`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    programs: dict[str, int] = {}
    for item in items:
        if item.path.parent.name != "musa_compile":
            continue
        cause = KNOWN_FAILURES.get(item.name)
        if cause is not None:
            item.add_marker(pytest.mark.xfail(strict=True, raises=cause.raises, reason=cause.reason))
        backend = getattr(item, "callspec", None) and item.callspec.params.get("backend")
        if backend is None:
            continue
        if backend == "inductor":
            item.add_marker(pytest.mark.inductor)
        number = programs.setdefault(item.originalname, len(programs))
        # aot_eager runs the same code as eager, and AOTAutograd too.
        sampled = {
            "eager": number % 4 == 1,
            "aot_eager": number % 2 == 0,
            "inductor": item.get_closest_marker("compiled") is not None,
        }
        if not sampled[backend]:
            item.add_marker(pytest.mark.full)


@pytest.fixture(autouse=True)
def _inductor(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("inductor"):
        from musa_compile import choice

        if choice.generator() == choice.NONE:
            skips.skip_permanently("host-addressable", "there is no Triton for the device")


@pytest.fixture(scope="package")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A folder for Inductor's caches, of all tests here and of the processes that they start: headers are
    compiled once.
    """
    folder = str(tmp_path_factory.mktemp("inductor"))
    previous = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    yield folder
    if previous is None:
        del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    else:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = previous


@pytest.fixture
def compiler(_no_leak, cache_folder: str) -> Iterator[None]:
    """torch's compiler on one thread, reset before and after the test."""
    import torch
    from torch._inductor import config
    from torch._inductor.codecache import PyCodeCache

    torch._dynamo.reset()
    with config.patch(compile_threads=1):
        yield
    torch._dynamo.reset()
    # Generated modules hold constants, and graphs with their memory.
    PyCodeCache.cache_clear()
