# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Random numbers. Each device has a Philox generator; its state is 16 bytes, the seed (uint64) then the
offset (int64).

Seeding does not use the device: before the first use it is queued, and runs at initialisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

import torch

from . import device as _device
from ._load import extension
from .initialization import call_when_initialized, is_in_bad_fork, is_initialized, lazy_init

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from ._types import Device


def _get_generator(device: Device = "musa") -> torch.Generator:
    """Default generator of a device."""
    lazy_init()
    return extension().default_generator(_device.device_index(device))


class _DefaultGenerators:
    """Default generators by device index, as a sequence that creates each at its first access, so that it
    costs nothing before."""

    def __len__(self) -> int:
        return _device.device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | tuple[torch.Generator, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} musa devices, so no default generator {index}")
        return _get_generator(index)


default_generators = _DefaultGenerators()


def get_rng_state(device: Device = "musa") -> torch.Tensor:
    """State of a device's generator: a CPU uint8 tensor of 16 bytes."""
    return _get_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """States of all devices' generators, as a list."""
    return [get_rng_state(index) for index in range(_device.device_count())]


def set_rng_state(new_state: torch.Tensor, device: Device = "musa") -> None:
    """Set the state of a device's generator.

    Args:
        new_state (Tensor): 16 bytes, uint8, on the CPU, as from :func:`get_rng_state`.
        device (int, str or torch.device): which device.
    """
    if is_initialized():
        state = new_state
    else:
        # A clone: the caller may overwrite the tensor before the queued call runs.
        state = new_state.clone()
    requested = _device._requested_index(device)
    key = ("set_rng_state", requested)
    call_when_initialized(lambda: _get_generator(requested).set_state(state), key)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the states of all devices' generators, from :func:`get_rng_state_all`."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _get_rng_state_offset(device: Device = "musa") -> int:
    # torch's functional random state (torch.cuda._get_rng_state_offset): numbers drawn so far, in steps of 4.
    return _get_generator(device).get_offset()


def _set_rng_state_offset(offset: int, device: Device = "musa") -> None:
    requested = _device._requested_index(device)
    key = ("_set_rng_state_offset", requested)
    call_when_initialized(lambda: _get_generator(requested).set_offset(offset), key)


def manual_seed(seed: int) -> None:
    """Seed the current device's generator. Safe to call without a device: it is then ignored."""
    seed = int(seed)
    call_when_initialized(lambda: _get_generator().manual_seed(seed), ("manual_seed",))


def manual_seed_all(seed: int) -> None:
    """Seed all devices' generators alike. Safe to call without a device: it is then ignored."""
    seed = int(seed)

    def call() -> None:
        for index in range(_device.device_count()):
            _get_generator(index).manual_seed(seed)

    call_when_initialized(call, ("manual_seed_all",))


def seed() -> None:
    """Seed the current device's generator with a random number. Safe to call without a device."""
    call_when_initialized(lambda: _get_generator().seed(), ("seed",))


def seed_all() -> None:
    """Seed all devices' generators with one random number. Safe to call without a device."""

    def call() -> None:
        drawn = _get_generator(0).seed()
        for index in range(1, _device.device_count()):
            _get_generator(index).manual_seed(drawn)

    call_when_initialized(call, ("seed_all",))


def initial_seed() -> int:
    """Seed of the current device's generator, as an int."""
    return _get_generator().initial_seed()


def fork_rng(devices: Iterable[Device] | None = None, enabled: bool = True) -> AbstractContextManager[None]:
    """`torch.random.fork_rng` for musa: on exit, restores the generators of the CPU and the given devices.

    Args:
        devices (iterable of devices, optional): None means all visible devices.
    """
    devices = range(_device.device_count()) if devices is None else devices
    return torch.random.fork_rng(
        [_device.device_index(d) for d in devices], enabled=enabled, device_type="musa"
    )


__all__ = [
    "default_generators",
    "fork_rng",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "is_in_bad_fork",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]
