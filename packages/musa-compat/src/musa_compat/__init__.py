# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Names of the vendor's torch_musa, for programs written for it.

`torch_musa` finds them by entry points.
"""
