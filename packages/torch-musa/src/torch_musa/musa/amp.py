# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.amp`: mixed precision, with the device filled in.

The module is the pack musa_amp's, imported on first access.
"""

import sys

from torch_musa import autocast, pack_modules

sys.modules[__name__] = pack_modules.load(__name__, "musa_amp", "musa_amp", autocast.absence)
