# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's module database, sorted into the cases that the conformance suite runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.testing._internal.common_modules import module_db

from .tolerances import Tolerance, tolerance_of

DTYPE = torch.float32


@dataclass(frozen=True)
class Case:
    """One module class in training or evaluation mode."""

    info: Any
    training: bool
    sampled: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def kind(self) -> str:
        return "train" if self.training else "eval"

    def __str__(self) -> str:
        return f"{self.kind}-{self.name}"

    @property
    def tolerance(self) -> Tolerance:
        return tolerance_of(self.info, DTYPE, gradients=True)

    def inputs(self) -> Iterator[Any]:
        """The database's constructor and forward arguments, on the CPU."""
        torch.manual_seed(0)
        return iter(
            self.info.module_inputs_func(
                self.info, device="cpu", dtype=DTYPE, requires_grad=True, training=self.training
            )
        )


def cases() -> list[Case]:
    """Every module, in both modes where they differ."""
    return [
        Case(info, training)
        for info in module_db
        if DTYPE in info.dtypes
        for training in ((True, False) if info.train_and_eval_differ else (True,))
    ]
