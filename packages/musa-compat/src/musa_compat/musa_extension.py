# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.utils.musa_extension`: the extension builder, with the vendor's headers on the include path.

The functions are those of `torch_musa.utils.cpp_extension`. Each header in `torch_musa/` includes one of the
runtime.
"""

import os
from pathlib import Path

from musa_runtime import config
from torch_musa.utils import cpp_extension
from torch_musa.utils.cpp_extension import BuildExtension, CppExtension


def _musa_home():
    try:
        return config.musa_home()
    except RuntimeError:
        return None


# The SDK in use, or None.
MUSA_HOME = _musa_home()
_HEADERS = str(Path(__file__).parent / "include")


def include_paths(musa=False):
    """Returns the include folders: that of the vendor's headers, then those of `cpp_extension`.

    Args:
        musa (bool): as `cuda` in torch. The SDK's folder is returned for both values, because the vendor's
            headers include it.
    """
    return [_HEADERS, *cpp_extension.include_paths()]


def library_paths(musa=False):
    """Returns the folders of the libraries, with the SDK's for both values of `musa`."""
    return cpp_extension.library_paths()


def MUSAExtension(name, sources, *args, **kwargs):
    """As `torch_musa.utils.cpp_extension.MUSAExtension`; `torch_musa/csrc/...` can be included."""
    folders = [os.fspath(folder) for folder in kwargs.pop("include_dirs", None) or []]
    return cpp_extension.MUSAExtension(name, sources, *args, include_dirs=[*folders, _HEADERS], **kwargs)


def load(name, sources, *args, **kwargs):
    """As `torch_musa.utils.cpp_extension.load`; `torch_musa/csrc/...` can be included."""
    return cpp_extension.load(name, sources, *args, **_with_headers(kwargs))


def load_inline(name, cpp_sources, *args, **kwargs):
    """As `torch_musa.utils.cpp_extension.load_inline`; `torch_musa/csrc/...` can be included."""
    return cpp_extension.load_inline(name, cpp_sources, *args, **_with_headers(kwargs))


def _with_headers(kwargs):
    return {**kwargs, "extra_include_paths": [*(kwargs.get("extra_include_paths") or []), _HEADERS]}


__all__ = [
    "MUSA_HOME",
    "BuildExtension",
    "CppExtension",
    "MUSAExtension",
    "include_paths",
    "library_paths",
    "load",
    "load_inline",
]
