# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The error where no code can be generated, raised for the first graph instead of a fault in a kernel."""

from torch._inductor.custom_graph_pass import CustomGraphModulePass


class Refusal(CustomGraphModulePass):
    """A pass over graphs with musa tensors that raises: Inductor calls it before it generates code."""

    def __call__(self, graph_module):
        raise RuntimeError(
            'torch.compile\'s backend "inductor" cannot generate kernels for this musa device: they would be '
            "C++ on the host, which cannot address the device's memory.\n"
            'Fix: torch.compile(..., backend="aot_eager"), which runs the operators that eager mode runs'
        )

    def uuid(self):
        return "musa: no generator"
