# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The interface of the tools: callbacks before and after each operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import mode

if TYPE_CHECKING:
    from typing_extensions import Self

    from .call import OperatorCall


class Observer:
    """A tool called for every operator of a `with` block, including all threads of backward passes.

    Tools entered in the same thread share a mode. `before` is called in the order in which tools were
    entered, `after` in reverse order, both with mode dispatch disabled.
    """

    def __enter__(self) -> Self:
        mode.add(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        mode.remove(self)

    def before(self, call: OperatorCall) -> None:
        """Called with an `OperatorCall` before the operator runs."""

    def after(self, call: OperatorCall) -> None:
        """Called after the operator has returned or raised: `call.result` or `call.error` is set."""
