# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The interface between the mode that sees operators and the tools of this package."""

from . import mode


class Observer:
    """A tool that sees every operator of a `with` block, on all threads of its backward passes.

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
