# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch operators by muDNN. No import is needed: `torch.musa` finds the pack by its entry point."""
