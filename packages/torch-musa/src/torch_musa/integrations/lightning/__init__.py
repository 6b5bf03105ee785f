# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Lightning and Fabric on musa: importing this module registers accelerator and strategies.

    import torch_musa.integrations.lightning
    trainer = Trainer(accelerator="musa", devices=2, precision="bf16-mixed")
    fabric = Fabric(accelerator="musa", devices=1, strategy="single_musa")

It supports the packages `lightning`, `pytorch_lightning` and `lightning_fabric`, and raises an ImportError if
none of them is installed. In the registries of each installed package it registers:

* the accelerator `"musa"`;
* the strategies `"single_musa"`, `"fsdp_musa"` and `"fsdp_cpu_offload_musa"`;
* the DDP strategies under their own names, as subclasses that also run on musa.

`on_musa(cls)` does the same for a strategy class that the program instantiates itself.
"""

import importlib
import importlib.util
import warnings

import torch

from .accelerator import accelerator_class, cpu_accelerator_class
from .strategies import on_musa

__all__ = ["on_musa"]

_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric")


def _register_trainer(package):
    """Registers with `lightning.pytorch` or `pytorch_lightning`."""
    accelerators = importlib.import_module(f"{package}.accelerators")
    strategies = importlib.import_module(f"{package}.strategies")
    _register(accelerators, accelerators.AcceleratorRegistry, strategies, strategies.StrategyRegistry)


def _register_fabric(package):
    """Registers with `lightning.fabric` or `lightning_fabric`."""
    accelerators = importlib.import_module(f"{package}.accelerators")
    strategies = importlib.import_module(f"{package}.strategies")
    _register(accelerators, accelerators.ACCELERATOR_REGISTRY, strategies, strategies.STRATEGY_REGISTRY)


def _register(accelerators, accelerator_registry, strategies, strategy_registry):
    ours = accelerator_class(accelerators.Accelerator)
    accelerator_registry.register("musa", ours, description="Moore Threads GPUs", override=True)
    cpu = cpu_accelerator_class(accelerators.CPUAccelerator)
    accelerator_registry.register("cpu", cpu, description="CPU", override=True)
    for name, entry in list(strategy_registry.items()):
        if issubclass(entry["strategy"], strategies.DDPStrategy):
            strategy_registry.register(
                name, on_musa(entry["strategy"]), entry["description"], override=True, **entry["init_params"]
            )
    single, fsdp = on_musa(strategies.SingleDeviceStrategy), on_musa(strategies.FSDPStrategy)
    strategy_registry.register("single_musa", single, "one musa device", override=True, device="musa")
    strategy_registry.register("fsdp_musa", fsdp, "FSDP on musa", override=True)
    strategy_registry.register(
        "fsdp_cpu_offload_musa", fsdp, "FSDP on musa, parameters on the CPU", override=True, cpu_offload=True
    )


def _raise_when_autocast_is_disabled():
    """Turns torch's warning about a disabled autocast into an error if Lightning causes it.

    A precision plugin for CUDA computes in float32 on musa. Plugins are corrected when Lightning passes them
    to an object of this package; this detects others, for example in a stock strategy of Fabric.
    """
    modules = r"(lightning|pytorch_lightning|lightning_fabric)\."
    warnings.filterwarnings("error", "CUDA is not available or torch_xla is imported", module=modules)
    # The scaler of such a plugin is replaced together with its device.
    warnings.filterwarnings("ignore", "torch.cuda.amp.GradScaler is enabled, but CUDA", module=modules)


def _import():
    installed = [package for package in _PACKAGES if importlib.util.find_spec(package)]
    if not installed:
        raise ImportError(
            "torch_musa.integrations.lightning needs Lightning, and none of the packages lightning, "
            "pytorch_lightning and lightning_fabric is installed.\n"
            "Fix: pip install lightning"
        )
    for package in installed:
        if package == "lightning":
            _register_trainer("lightning.pytorch")
            _register_fabric("lightning.fabric")
        elif package == "pytorch_lightning":
            _register_trainer(package)
        else:
            _register_fabric(package)
    if not torch.cuda.is_available():
        _raise_when_autocast_is_disabled()


_import()
