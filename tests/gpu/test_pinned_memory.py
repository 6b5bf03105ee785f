# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Pinned memory where torch.cuda is in the process too and its allocator serves it."""

from __future__ import annotations

import torch


def test_pinned_memory_is_not_reused_while_a_copy_from_it_waits() -> None:
    device = torch.device("musa")
    matrix = torch.rand(4096, 4096, device=device)
    for value in range(20):
        for _ in range(5):
            matrix @ matrix  # milliseconds, for which the copy waits
        host = torch.full((2,), value, pin_memory=True)
        copied = host.to(device, non_blocking=True)
        del host
        torch.full((2,), -1, pin_memory=True)
        assert copied.tolist() == [value, value]
