# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's optimizer database, sorted into the cases that the conformance suite runs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.testing._internal.common_optimizers import optim_db

from .tolerances import Tolerance, tolerance_of


@dataclass(frozen=True)
class Case:
    """One optimizer class in one implementation: plain, foreach, fused, capturable or differentiable."""

    info: Any
    implementation: str
    sampled: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.info.optim_cls.__name__

    @property
    def kind(self) -> str:
        return self.implementation

    def __str__(self) -> str:
        return f"{self.kind}-{self.name}"

    @property
    def tolerance(self) -> Tolerance:
        return tolerance_of(self.info, torch.float32, gradients=True)

    def settings(self) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        """(description, reference arguments, arguments under test) of each of the database's
        configurations.
        """
        settings = []
        for optim_input in self.info.optim_inputs_func(device="cpu"):
            base = {key: value for key, value in optim_input.kwargs.items() if key != "capturable"}
            flags = dict.fromkeys(self.info.supported_impls, False)
            reference = {**flags, **base}
            tested = dict(reference)
            if self.implementation != "plain":
                tested[self.implementation] = True
            settings.append((optim_input.desc, copy.deepcopy(reference), copy.deepcopy(tested)))
        return settings


def cases() -> list[Case]:
    """Every optimizer in every implementation that it offers."""
    return [
        Case(info, implementation)
        for info in optim_db
        for implementation in (
            "plain",
            *info.supported_impls,
            *(("capturable",) if info.has_capturable_arg else ()),
        )
    ]
