# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The state of the switch in this process."""

depth = 0  # calls of enable() without their disable()
mode = None  # the mode that the first of them entered
