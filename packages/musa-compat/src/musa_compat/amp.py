# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.amp`, an alias of `torch.musa.amp`."""

import sys

import torch

# Raises an error that names the wheel if the pack with this module is not installed.
sys.modules[__name__] = torch.musa.amp
