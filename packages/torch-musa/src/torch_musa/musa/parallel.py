# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.parallel`: data parallelism over the devices of one process.

The module is musa_runtime's, loaded when it is first asked for.
"""

import sys

from musa_runtime import parallel

sys.modules[__name__] = parallel
