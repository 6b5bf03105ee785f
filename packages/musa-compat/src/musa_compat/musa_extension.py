# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.utils.musa_extension`: the extension builder, with the vendor's layout on the include path.

The functions are those of `torch_musa.utils.cpp_extension`. The layout is the folder `torch_musa` of
site-packages, which the wheel of musa-compat adds headers and libraries to.
"""

from importlib import metadata
from pathlib import Path

# torchada takes the lock of a build through these two names, and removes one that a killed build has left.
from torch.utils.cpp_extension import _get_build_directory as _get_build_directory
from torch.utils.file_baton import FileBaton as FileBaton

from musa_port.cpp_extension import InstalledHeaders
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
LAYOUT = Path(str(metadata.distribution("musa-compat").locate_file("torch_musa")))
_GENERATED = LAYOUT / "share" / "generated_cuda_compatible"
_HEADERS = InstalledHeaders(
    folders=[str(LAYOUT.parent), str(_GENERATED / "aten" / "src"), str(_GENERATED / "include")],
    torch=_GENERATED / "include",
)
# The vendor's libraries, which a setup.py may name. The builder links the runtime, which has their functions.
_LIBRARIES = {"musa_python", "musa_kernels"}


def include_paths(musa=False):
    """Returns the include folders: those of the vendor's layout, then those of `cpp_extension`.

    Args:
        musa (bool): as `cuda` in torch. The SDK's folder is returned for both values, because the vendor's
            headers include it.
    """
    return [*_HEADERS.folders, *cpp_extension.include_paths()]


def library_paths(musa=False):
    """Returns the folders of the libraries, with the SDK's for both values of `musa`."""
    return [*cpp_extension.library_paths(), str(LAYOUT / "lib")]


def MUSAExtension(name, sources, *args, **kwargs):
    """As `torch_musa.utils.cpp_extension.MUSAExtension`; `torch_musa/csrc/...` can be included."""
    libraries = [library for library in kwargs.pop("libraries", None) or [] if library not in _LIBRARIES]
    extension = cpp_extension.MUSAExtension(name, sources, *args, libraries=libraries, **kwargs)
    extension.installed_headers = _HEADERS
    return extension


def load(name, sources, *args, **kwargs):
    """As `torch_musa.utils.cpp_extension.load`; `torch_musa/csrc/...` can be included."""
    return cpp_extension.load(name, sources, *args, installed_headers=_HEADERS, **kwargs)


def load_inline(name, cpp_sources, *args, **kwargs):
    """As `torch_musa.utils.cpp_extension.load_inline`; `torch_musa/csrc/...` can be included."""
    return cpp_extension.load_inline(name, cpp_sources, *args, installed_headers=_HEADERS, **kwargs)


def _is_musa_file(path):
    """Whether a path names a MUSA source. The builder compiles CUDA sources with mcc too.

    Programs replace this function by one that also accepts `.cu`, which the vendor's builder needs.
    """
    return Path(path).suffix in (".mu", ".muh")


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
