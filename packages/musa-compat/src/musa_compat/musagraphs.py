# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The backend "musagraphs" of torch.compile: torch's "cudagraphs", which captures graphs on musa."""


def compile(graph_module, example_inputs):
    """Compiles a graph of operators with torch's backend "cudagraphs".

    Args:
        graph_module (torch.fx.GraphModule): the operators.
        example_inputs (list of torch.Tensor): inputs of the shapes and dtypes to compile for.

    Returns:
        callable: the compiled function.
    """
    from torch._dynamo.backends.registry import lookup_backend

    return lookup_backend("cudagraphs")(graph_module, example_inputs)
