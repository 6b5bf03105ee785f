# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa._memory_viz`: torch's pages of memory snapshots, which have the same format for each device."""

import runpy
import sys

if __name__ == "__main__":
    runpy.run_module("torch.cuda._memory_viz", run_name="__main__", alter_sys=True)
else:
    from torch.cuda import _memory_viz

    sys.modules[__name__] = _memory_viz
