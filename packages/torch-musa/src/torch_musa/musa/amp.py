# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.amp`: mixed precision, with the device filled in.

The module is the pack musa_amp's, loaded when it is first asked for.
"""

import sys

try:
    import musa_amp
    import musa_amp.plugin  # a folder that pip left behind imports too, and has none
except ModuleNotFoundError as error:
    if error.name not in ("musa_amp", "musa_amp.plugin"):
        raise
    from torch_musa.autocast import NO_PACK

    raise ModuleNotFoundError(NO_PACK, name=__name__) from None

sys.modules[__name__] = musa_amp
