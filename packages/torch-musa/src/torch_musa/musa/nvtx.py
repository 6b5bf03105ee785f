# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.nvtx`: `torch.musa.mttx`, for programs in which only "cuda" was replaced by "musa"."""

import sys

from musa_runtime import markers

sys.modules[__name__] = markers
