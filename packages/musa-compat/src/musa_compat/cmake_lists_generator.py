# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.utils.cmake_lists_generator`, whose class names its replacements."""


class CMakeListsGenerator:
    """Raises an error when called: the files that the vendor's class writes are not public knowledge."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "torch_musa.utils.cmake_lists_generator.CMakeListsGenerator is not provided: the file that "
            "it writes is not public knowledge.\n"
            "Fix: list the sources in MUSAExtension of torch_musa.utils.musa_extension, without CMake; "
            "or write find_package(TorchMusa) and target_link_libraries(<target> PRIVATE torch_musa) in a "
            "CMakeLists.txt"
        )


__all__ = ["CMakeListsGenerator"]
