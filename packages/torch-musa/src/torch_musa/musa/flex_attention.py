# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.flex_attention`: a switch for torch's `flex_attention` on musa tensors.

Imported from musa_runtime on first use.
"""

import sys

from musa_runtime import flex_attention

sys.modules[__name__] = flex_attention
