# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.sparse`: legacy types of sparse tensors.

The module is musa_runtime's, loaded when it is first asked for.
"""

import sys

from musa_runtime import sparse

sys.modules[__name__] = sparse
