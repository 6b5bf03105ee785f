# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The state of the switch in this process."""

depth = 0  # number of enable() calls without a matching disable()
mode = None  # the mode that the first enable() entered
