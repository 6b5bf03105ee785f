# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An error for graphs with musa tensors that reach Inductor where it cannot generate code for them.

Without it Inductor raises `KeyError: 'musa'` from within, and other errors for other graphs.
"""

from torch._inductor.codegen import common, cpp, wrapper
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class _Refusal(CustomGraphModulePass):
    """A pass over graphs with musa tensors, which Inductor calls before it generates code."""

    def __init__(self, reason):
        self.reason = reason

    def __call__(self, graph_module):
        raise RuntimeError(self.reason())

    def uuid(self):
        return "musa: no generator"


def refuse(reason):
    """Let Inductor raise for every graph with musa tensors.

    Args:
        reason (callable): returns the text of the error, with its `Fix:`.
    """
    common.register_device_op_overrides("musa", common.DeviceOpOverrides())
    common.register_backend_for_device(
        "musa", cpp.CppScheduling, wrapper.PythonWrapperCodegen, device_custom_pass=_Refusal(reason)
    )
