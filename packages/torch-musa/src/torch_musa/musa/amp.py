# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.amp`: mixed precision, with the device filled in.

The module is the pack musa_amp's, loaded when it is first asked for.
"""

import sys

from torch_musa import pack_modules
from torch_musa.autocast import NO_PACK

sys.modules[__name__] = pack_modules.load(__name__, "musa_amp", "musa_amp", NO_PACK)
