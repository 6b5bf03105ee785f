# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Records the devices of a program: calls of operators on musa, and devices of called modules' parameters."""

from __future__ import annotations

from collections import Counter

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

# Operators that only move or fill tensors do not count as computation on the device.
NOT_COMPUTE = {"aten::zero_", "aten::fill_.Scalar", "aten::fill_.Tensor", "aten::copy_", "aten::_copy_from"}


class RanOnCPU(AssertionError):
    """A program that was meant for a device computed on the CPU."""


def _calls() -> int:
    return sum(row["calls"] for row in torch.musa.ops.table() if row["op"] not in NOT_COMPUTE)


class Observation:
    """Context manager that counts calls in its block.

    Attributes:
        parameters (Counter): calls of modules with parameters of their own, by the parameters' device.
        operators (int): calls of operators on musa devices, without copies and fills.
    """

    def __init__(self, watch_modules: bool = True) -> None:
        self.parameters: Counter[str] = Counter()
        self.operators = 0
        self._watch_modules = watch_modules

    def __enter__(self) -> Observation:
        self._before = _calls()
        self._hook = register_module_forward_pre_hook(self._note) if self._watch_modules else None
        return self

    def __exit__(self, *exc_info) -> None:
        if self._hook is not None:
            self._hook.remove()
        self.operators = _calls() - self._before

    def _note(self, module: torch.nn.Module, args) -> None:
        # A parametrization computes its weight while a model is built, before it is moved.
        if type(module).__module__.startswith("torch.nn.utils."):
            return
        # Modules that are being built or are loaded layer by layer have meta tensors as parameters.
        devices = {str(p.device) for p in module.parameters(recurse=False) if p.device.type != "meta"}
        self.parameters.update(devices)

    def summary(self) -> dict:
        """For records: ``{"parameters": {"musa:0": 12}, "operators": 345}``."""
        return {"parameters": dict(sorted(self.parameters.items())), "operators": self.operators}


def check_on_musa(summary: dict, result_devices: Counter, cpu_parameters: str = "", cpu_results: str = ""):
    """Raises RanOnCPU if a program computed on the CPU.

    Args:
        summary (dict): the summary of an Observation.
        result_devices (Counter): device types of the tensors that the program returned.
        cpu_parameters (str): the reason why modules may run on the CPU too; empty if they must not.
        cpu_results (str): the reason why tensors of the result may be on the CPU; empty if they must not.
    """
    found = summary["parameters"]
    where = f"parameters {found}, operators on musa: {summary['operators']}, results {dict(result_devices)}"
    if summary["operators"] == 0:
        raise RanOnCPU(f"ran on the CPU: no operator ran on musa ({where})")
    if found and not any(name.startswith("musa") for name in found):
        raise RanOnCPU(f"ran on the CPU: no called module has parameters on musa ({where})")
    if not cpu_parameters and any(not name.startswith("musa") for name in found):
        raise RanOnCPU(f"ran partly on the CPU: modules with parameters elsewhere were called ({where})")
    if not cpu_results and set(result_devices) - {"musa"}:
        raise RanOnCPU(f"ran partly on the CPU: results are not on musa ({where})")
