# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Orders of providers under which sweeps over the operator database run, in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

POLICIES = {
    "default": (),
    "discrete": ("mudnn", "ported", "host-copy"),  # the default where the host cannot address device memory
    "ported": ("ported", "host"),
}


@contextmanager
def policy(name: str) -> Iterator[None]:
    """Set the named order of providers within the block."""
    import torch

    providers = POLICIES[name]
    if not torch.musa.get_device_properties(0).is_integrated:  # the host cannot address the device's memory
        providers = tuple("host-copy" if provider == "host" else provider for provider in providers)
    if not providers:
        yield
        return
    with torch.musa.ops.prefer("*", *providers):
        yield


def sampled(cases: list, step: int, full: bool) -> list:
    """All cases with --full, otherwise every `step`-th of them."""
    return cases if full else cases[::step]
