# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The logger, and the class that writes CMake files, which is refused."""

import logging

from torch_musa.utils.cmake_lists_generator import CMakeListsGenerator
from torch_musa.utils.logger_util import LOGGER

logging.basicConfig(level=logging.DEBUG)
LOGGER.debug("debug")
LOGGER.info("info")
LOGGER.warning("warn")
LOGGER.error("error")
LOGGER.critical("critical")
try:
    CMakeListsGenerator(sources=["a.mu"], include_dirs=["include"], link_libraries=["libb.so"]).generate()
except NotImplementedError as error:
    assert "Fix: list the sources in MUSAExtension" in str(error) and "find_package(TorchMusa)" in str(error)
else:
    raise AssertionError("a class without public description was called")
print("done")
