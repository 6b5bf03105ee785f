# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchtitan's components find musa. Its models are not tested, because importing them needs Triton."""

from __future__ import annotations

import pytest
import torch

from tests.ecosystem.tiny import images, tokens


def test_the_device_is_found():
    from torchtitan.tools import utils

    assert utils.device_type == "musa" and utils.device_module is torch.musa
    assert utils.get_device_info() == ("musa", torch.musa)


def test_the_memory_monitor_reads_the_device():
    from torchtitan.components import metrics

    monitor = metrics.build_device_memory_monitor()
    assert monitor.device_capacity == torch.musa.get_device_properties(0).total_memory
    held = torch.empty(2**25, device="musa")
    stats = monitor.get_peak_stats()
    assert stats.max_active_gib * 2**30 >= held.numel() * 4 and stats.num_ooms == 0
    assert 0 < stats.max_reserved_pct <= 100


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_loss(dtype, both):
    from torchtitan.components.loss import cross_entropy_loss

    def program(device):
        logits = images(2, 6, 99).to(device=device, dtype=dtype).requires_grad_()
        loss = cross_entropy_loss(logits, tokens(2, 6).to(device))
        loss.backward()
        return [loss, logits.grad]

    both(program)


def test_gradients_are_clipped(both):
    from torchtitan.distributed.utils import clip_grad_norm_

    def program(device):
        torch.manual_seed(0)
        model = torch.nn.Linear(8, 8).to(device)
        (model(images(4, 8).to(device)).square().sum() * 10).backward()
        norm = clip_grad_norm_(list(model.parameters()), 1.0)
        return [norm, [parameter.grad for parameter in model.parameters()]]

    both(program)
