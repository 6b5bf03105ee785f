# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.distributed`. FSDP, FSDP2 and DTensor are torch's own and need nothing from this module."""

# Empty: see core.py.
__path__ = []
