# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.utils.logger_util`: a logger of Python's logging module."""

import logging

from .deprecation import warn_once

warn_once("torch_musa.utils.logger_util", "logging.getLogger(name)")

LOGGER = logging.getLogger("torch_musa")

__all__ = ["LOGGER"]
