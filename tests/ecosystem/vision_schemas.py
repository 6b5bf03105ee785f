# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes `import torchvision` succeed although its library cannot be loaded."""

from __future__ import annotations

import torch


def declare() -> None:
    """Declares the operators that torchvision's Python code refers to while it is imported.

    The wheel on the index is built for CUDA. Beside a CPU build of torch its library does not load, and the
    import fails on operators without a schema. No case calls them.
    """
    for name in ("torchvision::nms", "torchvision::qnms") if torch.version.cuda is None else ():
        if not torch._C._jit_get_schemas_for_operator(name):
            torch.library.define(name, "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
