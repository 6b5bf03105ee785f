# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Chooses the kernel generator when a graph with musa tensors is compiled.

Choosing initializes the device, so it must not be done earlier: programs may import the compiler, then fork.
"""

import functools

from musa_runtime import capabilities, device

from . import config, triton_driver

HOST = "C++"
TRITON = "Triton"
NONE = "none"

_EAGER = 'Fix: torch.compile(..., backend="aot_eager"), which runs the operators that eager mode runs'
_INSTALL = 'install Triton for MUSA, the vendor\'s build, which has a backend for the target "musa"'


def generator():
    """Returns the name of the generator for the device and `config.generator`.

    Returns:
        str: `"C++"`, `"Triton"`, or `"none"` if neither can be used.

    Raises:
        ValueError: if `config.generator` is not one of its values.
    """
    wanted = config.generator
    if wanted not in config.GENERATORS:
        values = ", ".join(map(repr, config.GENERATORS))
        raise ValueError(
            f"musa_compile.config.generator is {wanted!r}, which is not a kernel generator.\n"
            f"Fix: set musa_compile.config.generator to one of {values}"
        )
    if wanted != "triton" and _computes_on_host():
        return HOST
    if wanted != "host" and triton_driver.find().name is not None:
        return TRITON
    return HOST if wanted != "triton" and _is_host_addressable() else NONE


def refusal():
    """Returns the error message for a `generator` of `"none"`."""
    causes = []
    if config.generator != "triton":
        causes.append("C++ kernels run on the host, which cannot address the device's memory")
    if config.generator != "host":
        causes.append(f"Triton cannot be used: {triton_driver.find().reason}")
    asked = "" if config.generator is None else f" (musa_compile.config.generator is {config.generator!r})"
    other = _INSTALL if config.generator != "host" else "set musa_compile.config.generator = None"
    return (
        f'torch.compile\'s backend "inductor" cannot generate code for this musa device{asked}.\n'
        f"Likely causes: {'; '.join(causes)}\n"
        f"{_EAGER}; or {other}"
    )


@functools.cache
def _computes_on_host():
    return not device.is_available() or capabilities.computes_on_host()


@functools.cache
def _is_host_addressable():
    return not device.is_available() or capabilities.host_addressable()
