# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.mccl`: MCCL's version; collectives are `torch.distributed`'s.

The module is the pack musa_distributed's, imported on first access.
"""

import sys

from torch_musa import pack_modules


def _absence():
    return pack_modules.absence(
        "torch.musa.mccl and the backend 'mccl' of torch.distributed", "distributed", "musa-distributed"
    )


sys.modules[__name__] = pack_modules.load(__name__, "musa_distributed", "musa_distributed.mccl", _absence)
