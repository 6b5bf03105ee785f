# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Orders of providers under which sweeps over the operator database run, in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.harness import absent

POLICIES = {
    "default": (),
    "discrete": ("mudnn", "ported", "host-copy"),  # the default where the host cannot address device memory
    "ported": ("ported", "host"),
}


@contextmanager
def policy(name: str) -> Iterator[None]:
    """Set the named order of providers within the block."""
    import torch

    from tests.harness.device import host_can_address_device_memory

    providers = POLICIES[name]
    absent.skip_without(providers)
    if not host_can_address_device_memory():
        providers = tuple("host-copy" if provider == "host" else provider for provider in providers)
    if not providers:
        yield
        return
    with torch.musa.ops.prefer("*", *providers):
        yield


def sampled(cases: list, step: int, full: bool) -> list:
    """All cases with --full, otherwise every `step`-th of them."""
    return cases if full else cases[::step]
