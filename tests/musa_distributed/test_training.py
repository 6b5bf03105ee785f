# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch's engines on musa, compared with one process on the whole batch: see training.py."""

from __future__ import annotations

import pytest
import torch

from tests.musa_distributed import training


@pytest.mark.parametrize(
    "case",
    [
        training.ddp,
        training.ddp_in_many_buckets,
        training.ddp_accumulates,
        training.ddp_comm_hooks,
        training.ddp_join,
        training.sync_batch_norm,
        training.zero_redundancy,
        training.fsdp2,
        training.fsdp2_mixed_precision,
        training.fsdp2_offloads,
        training.fsdp1,
        training.sharded_grad_scaler,
        training.tensor_parallel,
        training.dtensor,
        training.pipeline,
        training.functional_collectives,
        training.objects,
    ],
    ids=lambda case: case.__name__,
)
def test_on_two_ranks(two_ranks, case):
    two_ranks.run(case)


@pytest.mark.parametrize(
    "case", [training.ddp, training.two_dimensional, training.pipeline], ids=lambda case: case.__name__
)
def test_on_four_ranks(four_ranks, case):
    four_ranks.run(case)


@pytest.mark.parametrize("in_background", [False, True], ids=["save", "async_save"])
def test_a_checkpoint_of_two_ranks_goes_on_with_four(two_ranks, four_ranks, tmp_path, in_background):
    expected = two_ranks.run(training.save_checkpoint, str(tmp_path / "checkpoint"), in_background)[0]
    for got in four_ranks.run(training.load_checkpoint, str(tmp_path / "checkpoint")):
        for name, value in expected.items():
            torch.testing.assert_close(got[name], value, rtol=1e-4, atol=1e-5)
