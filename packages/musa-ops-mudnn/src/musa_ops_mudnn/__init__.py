# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch operators served by muDNN. Nothing to import by hand: `torch.musa` finds the pack by itself."""
