# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Placeholders in `torch.backends` for libraries whose pack is missing, so that programs can set options
on every machine.

torch-musa declares them by entry points of group `torch_musa.backend_placeholders`. An entry point's name is
that of the pack and of the library in `torch.backends`; its value is the class. `import_hooks.py` adds them.
"""

from __future__ import annotations

import contextlib
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class AbsentBackend(types.ModuleType):
    """Settings without effect, like those of `torch.backends.cudnn` in a torch without cuDNN.

    Attributes:
        enabled (bool), benchmark (bool), deterministic (bool), allow_tf32 (bool): stored, but have no effect.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "The settings have no effect: the library's pack is missing or disabled.")
        self.enabled, self.benchmark, self.deterministic, self.allow_tf32 = True, False, False, False

    def version(self) -> int | None:
        """Returns None, because the library is missing."""
        return None

    def is_available(self) -> bool:
        """Returns False, because the library is missing."""
        return False

    def set_flags(
        self,
        _allow_tf32: bool | None = None,
        _enabled: bool | None = None,
        _benchmark: bool | None = None,
        _deterministic: bool | None = None,
    ) -> tuple[bool, bool, bool, bool]:
        """Sets the arguments that are not None. Returns the previous settings in parameter order."""
        before = (self.allow_tf32, self.enabled, self.benchmark, self.deterministic)
        given = (_allow_tf32, _enabled, _benchmark, _deterministic)
        self.allow_tf32, self.enabled, self.benchmark, self.deterministic = (
            old if new is None else new for old, new in zip(before, given, strict=True)
        )
        return before

    @contextlib.contextmanager
    def flags(
        self,
        allow_tf32: bool | None = None,
        enabled: bool | None = None,
        benchmark: bool | None = None,
        deterministic: bool | None = None,
    ) -> Iterator[None]:
        """Changes the given settings within a block."""
        before = self.set_flags(allow_tf32, enabled, benchmark, deterministic)
        try:
            yield
        finally:
            self.set_flags(*before)
