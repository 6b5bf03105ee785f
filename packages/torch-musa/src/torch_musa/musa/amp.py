# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.amp`: mixed precision, with the device filled in.

The module is the pack musa_amp's, loaded when it is first asked for.
"""

import sys

try:
    import musa_amp
except ModuleNotFoundError as error:
    if error.name != "musa_amp":
        raise
    from torch_musa.autocast import NO_PACK

    raise ModuleNotFoundError(NO_PACK, name=__name__) from None

sys.modules[__name__] = musa_amp
