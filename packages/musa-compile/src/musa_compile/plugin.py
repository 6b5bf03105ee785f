# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called by the loader of `torch_musa`."""

import os
import tempfile

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "torch.compile: Dynamo and Inductor"}


@hookimpl
def musa_doctor_checks():
    return [
        ("compiler of torch.compile", _check_compiler),
        ("Triton for torch.compile", _check_triton),
        ("cache of torch.compile", _check_cache),
    ]


_NOT_CHOSEN = "C++ or Triton is chosen by the device, and none is visible"
_CACHE_FIX = "Fix: export TORCHINDUCTOR_CACHE_DIR=<a folder on a disk that programs may be run from>"


def _without_device():
    from musa_runtime import device

    return not device.is_available()


def _check_compiler():
    try:
        # Importing Inductor creates its cache folder.
        from torch._inductor.cpp_builder import get_cpp_compiler
        from torch._inductor.exc import InvalidCxxCompiler
    except OSError as error:
        raise UserWarning(
            "Inductor cannot be imported.\n"
            f"Likely causes: its cache folder cannot be created: {error}\n{_CACHE_FIX}"
        ) from error

    from . import choice

    try:
        compiler = get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise UserWarning(
            "Inductor compiles C++ kernels at run time, but no C++ compiler was found.\n"
            "Likely causes: none is installed; CXX names a missing program.\n"
            "Fix: install g++ (apt-get install g++), or export CXX=<the compiler>"
        ) from error
    generator = _NOT_CHOSEN if _without_device() else f"kernels by {choice.generator()}"
    return f"{compiler}; {generator}"


def _check_triton():
    from . import choice, triton_driver

    driver = triton_driver.find()
    if _without_device():
        found = driver.reason or f"driver {driver.name!r}"
        return f"{_NOT_CHOSEN}; {found}"
    generator = choice.generator()
    if generator == choice.NONE:
        raise UserWarning(choice.refusal())
    if driver.name is None:
        return f"not needed, because kernels are C++; {driver.reason}"
    return f"driver {driver.name!r}; {'in use' if generator == choice.TRITON else 'not in use'}"


def _check_cache():
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    try:
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        folder = cache_dir()
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserWarning(
            f"Inductor keeps compiled kernels in {folder or error.filename}, which cannot be written: "
            f"{error}.\n"
            f"Likely causes: the disk is full or read-only; another user owns the folder\n{_CACHE_FIX}"
        ) from error
    return folder
