# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The interface of the tools: callbacks before and after each operator."""

from . import mode


class Observer:
    """A tool that is called for every operator of a `with` block, on all threads of its backward passes.

    Tools that are entered in one thread share a mode. `before` runs in the order in which they were entered
    and `after` in reverse, both with dispatch to modes disabled.
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
