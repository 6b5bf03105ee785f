# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.amp`, which is `torch.musa.amp`."""

import sys

import torch

# An error names the wheel, if the pack that has the module is not installed.
sys.modules[__name__] = torch.musa.amp
