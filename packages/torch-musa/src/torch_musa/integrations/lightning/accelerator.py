# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The accelerator "musa" of Lightning and Fabric, and the accelerator "cpu" with a hint."""

import functools
import warnings

import torch

from .derived import Derived, derive
from .precision import to_musa
from .strategies import OnMusa


@functools.cache
def accelerator_class(base):
    """Returns the accelerator "musa", a subclass of the `Accelerator` of Lightning or Fabric."""
    mixin = TrainerAccelerator if hasattr(base, "setup") else FabricAccelerator
    derived = derive(accelerator_class, mixin, base)
    derived.__name__ = derived.__qualname__ = "MUSAAccelerator"
    return derived


@functools.cache
def cpu_accelerator_class(base):
    """Returns the accelerator "cpu", a subclass of `CPUAccelerator` that warns if musa is available."""
    return derive(cpu_accelerator_class, CPUWithHint, base)


class MUSADevices(Derived):
    """The accelerator interface that both packages share."""

    @staticmethod
    def name():
        return "musa"

    @staticmethod
    def is_available():
        return torch.musa.is_available()

    @staticmethod
    def auto_device_count():
        return torch.musa.device_count()

    @staticmethod
    def parse_devices(devices):
        """Returns the indices of the requested devices.

        Args:
            devices (int, str or list of int): a number of devices, -1 for all, or indices; also as a string:
                "2", "0,1", "1,".

        Returns:
            list of int: the indices.

        Raises:
            ValueError: if `devices` is none of these, repeats an index, or names a missing device.
        """
        count = torch.musa.device_count()
        try:
            chosen = _indices(devices, count)
        except (TypeError, ValueError):
            chosen = []
        if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= index < count for index in chosen):
            raise ValueError(
                f"devices={devices!r} is not a valid selection of musa devices: this process has {count}.\n"
                "Likely causes: more devices were requested than exist; an index occurs twice; "
                "MUSA_VISIBLE_DEVICES hides some.\n"
                f"Fix: devices=N with N from 1 to {count}, or a list of different indices below {count}"
            )
        return chosen

    @staticmethod
    def get_parallel_devices(devices):
        return [torch.device("musa", index) for index in devices]

    def setup_device(self, device):
        """Makes `device` the current device."""
        torch.musa.set_device(device)

    def teardown(self):
        torch.musa.empty_cache()


def _indices(devices, count):
    if isinstance(devices, str):
        parts = [int(part) for part in devices.split(",") if part.strip()]
        devices = parts if "," in devices else int(devices)
    if isinstance(devices, int):
        devices = range(count if devices == -1 else devices)
    return [int(index) for index in devices]


class FabricAccelerator(MUSADevices):
    """The accelerator of Fabric, which passes only a device."""

    def setup_device(self, device):
        """Makes `device` the current device.

        Raises:
            ValueError: if Fabric has chosen the CPU.
        """
        if device.type != "musa":
            raise ValueError(
                f"Fabric(accelerator='musa') would compute on {str(device)!r}.\n"
                "Likely causes: without a strategy, Fabric uses the CPU for one device of an "
                "external accelerator; the strategy has its own device.\n"
                "Fix: Fabric(accelerator='musa', strategy='single_musa', ...)"
            )
        super().setup_device(device)


class TrainerAccelerator(MUSADevices):
    """The accelerator of a Trainer. `setup` is called before the model is moved to the device."""

    def setup_device(self, device):
        # Without a strategy a Trainer has selected the CPU here; `setup`, which receives the
        # Trainer, corrects it.
        if device.type == "musa":
            super().setup_device(device)

    def setup(self, trainer):
        """Corrects the device, autocast and scaler that a Trainer chooses for external accelerators.

        Raises:
            TypeError: if the strategy runs on CUDA only; the message contains the fix.
            ValueError: if the strategy has another device.
        """
        strategy = trainer.strategy
        if not isinstance(strategy, OnMusa):
            _use_musa_device(trainer, strategy)
            strategy.precision_plugin = to_musa(strategy.precision_plugin)
        if strategy.root_device.type != "musa":
            raise ValueError(
                f"Trainer(accelerator='musa') would compute on {str(strategy.root_device)!r}, the device of "
                f"{type(strategy).__name__}.\n"
                "Fix: omit strategy=..., or pass strategy='single_musa' or strategy='ddp'"
            )
        torch.musa.set_device(strategy.root_device)
        torch.musa.empty_cache()

    def get_device_stats(self, device):
        """Returns the allocator's counters, `torch.musa.memory_stats(device)`."""
        return torch.musa.memory_stats(device)


def _use_musa_device(trainer, strategy):
    """Sets the device of a stock single-device strategy to musa, and raises an error for a stock DDP."""
    device_ids = getattr(strategy, "determine_ddp_device_ids", None)
    if device_ids is not None and device_ids() is not None:
        name = type(strategy).__name__
        raise TypeError(
            f"{name} uses streams of torch.cuda and does not run on musa.\n"
            f"Fix: from torch_musa.integrations.lightning import on_musa; strategy=on_musa({name})(...)"
        )
    chosen = getattr(getattr(trainer, "_accelerator_connector", None), "_parallel_devices", None)
    if strategy.root_device.type == "cpu" and hasattr(strategy, "_root_device") and chosen:
        strategy._root_device = chosen[0]


class CPUWithHint(Derived):
    """The accelerator "cpu", which Lightning also selects for "auto" on a machine with musa devices."""

    def setup_device(self, device):
        super().setup_device(device)
        if torch.musa.is_available():
            warnings.warn(
                "A musa device is available, but Lightning computes on the CPU. accelerator='auto' never "
                "selects musa. Fix: accelerator='musa'",
                stacklevel=2,
            )
