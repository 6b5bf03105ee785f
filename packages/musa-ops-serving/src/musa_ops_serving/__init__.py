# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators that serve language models on musa devices: `torch.ops.musa_serving.*`.

`import torch` makes the loader of torch-musa import it, so it imports nothing itself.
"""
