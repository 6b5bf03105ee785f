# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The errors of `config.cpp_wrapper` and of AOTInductor where there is no wrapper in C++ for musa."""


class NoCppWrapper:
    """Registered in place of a wrapper in C++: raises when a program uses it.

    Attributes:
        refusal (str): the message.
    """

    supports_caching = False
    refusal = (
        "Inductor's C++ wrapper and AOTInductor do not support Triton kernels for musa.\n"
        "Fix: compile without config.cpp_wrapper; or set musa_compile.config.generator = 'host', if the "
        "host can address the device's memory"
    )

    @classmethod
    def create(cls, is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        raise NotImplementedError(cls.refusal)


class NoCppWrapperInThisTorch(NoCppWrapper):
    """For torch 2.11 and 2.12, whose wrapper has no methods for other devices to override."""

    refusal = (
        "Inductor's C++ wrapper and AOTInductor support musa with torch 2.13 and later.\n"
        "Fix: compile without config.cpp_wrapper, or install torch 2.13 with the musa packages built for it"
    )
