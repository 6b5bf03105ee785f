# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.mccl`: what can be asked of MCCL; collectives are `torch.distributed`'s.

The module is the pack musa_distributed's, loaded when it is first asked for.
"""

import sys

from torch_musa import pack_modules

_NO_PACK = (
    "torch.musa.mccl and the backend 'mccl' of torch.distributed need the pack 'distributed', which is not "
    "installed.\nTo mend it: pip install torch-musa[distributed]"
)

sys.modules[__name__] = pack_modules.load(__name__, "musa_distributed", "musa_distributed.mccl", _NO_PACK)
