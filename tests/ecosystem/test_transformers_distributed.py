# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""transformers' Trainer under torchrun: two ranks over mccl give the losses of two ranks over gloo on the
CPU."""

from __future__ import annotations

import pytest

from tests.ecosystem.programs import free_port

WAYS = {"ddp": 1e-4, "fsdp2 bf16": 2e-2}


def launcher(device: str) -> list[str]:
    return ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_torchrun(way, both, tmp_path):
    """FSDP is compared with DDP on the CPU."""
    both.launched(
        "trainer_program.py",
        way,
        launcher=launcher,
        folder=tmp_path,
        within=WAYS[way],
        cpu_arguments=["ddp"] if way.startswith("fsdp") else None,
    )
