# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Strategies of Lightning and Fabric, derived to run on musa too and otherwise unchanged."""

import functools

import torch

from .derived import Derived, derive
from .precision import to_musa


@functools.cache
def on_musa(base):
    """Returns a subclass of a strategy that also runs on musa: `on_musa(DDPStrategy)(static_graph=True)`.

    Args:
        base (type): a strategy class of Lightning or Fabric, or one derived from it.

    Returns:
        type: the subclass; `base` itself if it is already such a subclass.

    Raises:
        TypeError: if `base` is not a strategy class.
    """
    if not (isinstance(base, type) and hasattr(base, "root_device")):
        raise TypeError(
            f"on_musa() takes a strategy class of Lightning or Fabric, not {base!r}.\n"
            "Likely cause: an instance was passed.\n"
            "Fix: on_musa(DDPStrategy)(find_unused_parameters=True)"
        )
    if issubclass(base, OnMusa):
        return base
    trainer = hasattr(base, "precision_plugin")
    mixin = _TrainerStrategy if trainer else _FabricStrategy
    names = {parent.__name__ for parent in base.__mro__}
    if "DDPStrategy" in names:
        mixin = _TrainerDDP if trainer else _FabricDDP
    elif "FSDPStrategy" in names:
        mixin = _TrainerFSDP if trainer else _FabricFSDP
    elif "SingleDeviceStrategy" in names:
        mixin = _TrainerSingle if trainer else _FabricSingle
    return derive(on_musa, mixin, base)


class OnMusa(Derived):
    """Base of the derived strategies."""

    def _uses_musa(self):
        """Whether the accelerator is "musa". The root device is only known after the accelerator is set."""
        return self.accelerator is not None and self.accelerator.name() == "musa"

    def _to_musa(self, plugin):
        return to_musa(plugin) if self._uses_musa() else plugin


class _TrainerStrategy(OnMusa):
    @property
    def precision_plugin(self):
        return super().precision_plugin

    @precision_plugin.setter
    def precision_plugin(self, plugin):
        super(_TrainerStrategy, type(self)).precision_plugin.fset(self, self._to_musa(plugin))


class _FabricStrategy(OnMusa):
    @property
    def precision(self):
        return super().precision

    @precision.setter
    def precision(self, plugin):
        super(_FabricStrategy, type(self)).precision.fset(self, self._to_musa(plugin))


class _SingleDevice:
    """Runs on the device in the argument `devices`, which Lightning assigns if `parallel_devices` exists."""

    _parallel_devices = None

    @property
    def parallel_devices(self):
        return self._parallel_devices

    @parallel_devices.setter
    def parallel_devices(self, devices):
        if devices and self._uses_musa():
            if len(devices) > 1:
                raise ValueError(
                    f"strategy 'single_musa' runs on one device, but {len(devices)} were requested.\n"
                    "Fix: devices=1, or strategy='ddp'"
                )
            self._parallel_devices, self._root_device = devices, devices[0]


class _TrainerSingle(_SingleDevice, _TrainerStrategy):
    pass


class _FabricSingle(_SingleDevice, _FabricStrategy):
    pass


class _TrainerDDP(_TrainerStrategy):
    def determine_ddp_device_ids(self):
        # With indices, Lightning wraps the module on a torch.cuda stream. DDP does not need them
        # for a single device.
        return None if self._uses_musa() else super().determine_ddp_device_ids()

    def _register_ddp_hooks(self):
        if self._uses_musa() and self._ddp_comm_hook is not None:
            wrap, hook = self._ddp_comm_wrapper, self._ddp_comm_hook
            self.model.register_comm_hook(self._ddp_comm_state, wrap(hook) if wrap is not None else hook)
        else:
            super()._register_ddp_hooks()


class _FabricDDP(_FabricStrategy):
    def _determine_ddp_device_ids(self):
        return None if self._uses_musa() else super()._determine_ddp_device_ids()


class _Sharded:
    """FSDP: a device mesh given as a tuple would otherwise consist of CUDA devices."""

    def setup_environment(self):
        options = self._fsdp_options()
        shape = options.get("device_mesh")
        if not (self._uses_musa() and isinstance(shape, tuple)):
            return super().setup_environment()
        del options["device_mesh"]
        super().setup_environment()
        options["device_mesh"] = torch.distributed.init_device_mesh("musa", shape)


class _TrainerFSDP(_Sharded, _TrainerStrategy):
    def _fsdp_options(self):
        return self.kwargs


class _FabricFSDP(_Sharded, _FabricStrategy):
    def _fsdp_options(self):
        return self._fsdp_kwargs
