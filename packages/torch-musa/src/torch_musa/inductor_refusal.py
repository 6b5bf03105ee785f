# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes Inductor raise a clear error for graphs with musa tensors that it cannot compile.

Otherwise Inductor raises `KeyError: 'musa'` or, for other graphs, other errors.
"""

from torch._inductor.codegen import common, cpp, wrapper
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class _Refusal(CustomGraphModulePass):
    """A graph pass that Inductor calls before it generates code for musa tensors."""

    def __init__(self, reason):
        self.reason = reason

    def __call__(self, graph_module):
        raise RuntimeError(self.reason())

    def uuid(self):
        return "musa: no generator"


def refuse(reason):
    """Makes Inductor raise an error for every graph with musa tensors.

    Args:
        reason (callable): returns the error message, including `Fix:`.
    """
    common.register_device_op_overrides("musa", common.DeviceOpOverrides())
    common.register_backend_for_device(
        "musa", cpp.CppScheduling, wrapper.PythonWrapperCodegen, device_custom_pass=_Refusal(reason)
    )
