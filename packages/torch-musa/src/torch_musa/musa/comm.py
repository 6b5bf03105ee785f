# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.comm`: copies tensors between the devices of one process.

Imported from musa_runtime on first use.
"""

import sys

from musa_runtime import comm

sys.modules[__name__] = comm
