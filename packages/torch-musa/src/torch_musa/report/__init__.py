# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa report`: writes one text file to send with a bug report."""

from .command import add_arguments, run

__all__ = ["add_arguments", "run"]
