# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The interface of the tools: callbacks before and after each operator."""

from . import mode


class Observer:
    """A tool called for every operator of a `with` block, including all threads of backward passes.

    Tools entered in the same thread share a mode. `before` is called in the order in which tools were
    entered, `after` in reverse order, both with mode dispatch disabled.
    """

    def __enter__(self):
        mode.add(self)
        return self

    def __exit__(self, *exc_info):
        mode.remove(self)

    def before(self, call):
        """Called with an `OperatorCall` before the operator runs."""

    def after(self, call):
        """Called after the operator has returned or raised: `call.result` or `call.error` is set."""
