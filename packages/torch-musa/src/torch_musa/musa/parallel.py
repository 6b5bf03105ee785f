# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.parallel`: data parallelism over the devices of one process.

Imported from musa_runtime on first use.
"""

import sys

from musa_runtime import parallel

sys.modules[__name__] = parallel
