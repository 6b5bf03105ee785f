# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.sparse`: legacy sparse tensor types.

Imported from musa_runtime on first use.
"""

import sys

from musa_runtime import sparse

sys.modules[__name__] = sparse
