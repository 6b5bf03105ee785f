# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Random numbers of DTensor on musa: torch's offset-based tracker supports the generator's 16-byte state."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, _random, distribute_tensor, rand
from torch.testing._internal.distributed.fake_pg import FakeStore

pytestmark = pytest.mark.filterwarnings("ignore")  # torch warns about its fake process group

WORLD = 2


@pytest.fixture
def as_rank(musa, monkeypatch):
    """A function that runs a function as each rank of a mesh whose collectives do nothing."""

    def run(function):
        results = []
        for rank in range(WORLD):
            dist.init_process_group("cpu:fake,musa:fake", rank=rank, world_size=WORLD, store=FakeStore())
            monkeypatch.setattr(_random, "_rng_tracker", None)
            try:
                results.append(function(init_device_mesh("musa", (WORLD,))))
            finally:
                dist.destroy_process_group()
        return results

    return run


def offset():
    return torch.musa.get_rng_state()[8:].view(torch.int64).item()


def test_shards_differ_and_replicas_agree(as_rank):
    def draw(mesh):
        assert _random.is_rng_supported_mesh(mesh)
        _random.manual_seed(7, mesh)
        sharded = rand(6, 4, device_mesh=mesh, placements=[Shard(0)]).to_local()
        replicated = rand(5, device_mesh=mesh, placements=[Replicate()]).to_local()
        assert isinstance(_random._rng_tracker, _random.OffsetBasedRNGTracker)
        assert sharded.device.type == "musa" and sharded.shape == (3, 4)
        return sharded.cpu(), replicated.cpu()

    first, second = as_rank(draw)
    assert not torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])


def test_the_offset_advances_by_the_whole_tensor_on_every_rank(as_rank):
    def draw(mesh):
        _random.manual_seed(7, mesh)
        rand(6, 4, device_mesh=mesh, placements=[Shard(0)])
        after_shards = offset()
        rand(5, device_mesh=mesh, placements=[Replicate()])
        return after_shards, offset()

    assert as_rank(draw) == [(24, 32), (24, 32)]  # 5 numbers advance by 8, because offsets are multiples of 4


def test_the_same_seed_gives_the_same_shards(as_rank):
    def draw(mesh):
        _random.manual_seed(3, mesh)
        return rand(8, device_mesh=mesh, placements=[Shard(0)]).to_local().cpu()

    assert all(torch.equal(a, b) for a, b in zip(as_rank(draw), as_rank(draw), strict=True))


def test_dropout_of_a_sharded_tensor(as_rank):
    def drop(mesh):
        _random.manual_seed(5, mesh)
        ones = distribute_tensor(torch.ones(64, 8), mesh, [Shard(0)], src_data_rank=None)
        return torch.nn.functional.dropout(ones, 0.5).to_local().cpu()

    first, second = as_rank(drop)
    assert not torch.equal(first, second)
    for part in (first, second):
        assert set(part.unique().tolist()) == {0.0, 2.0}


def test_the_trackers_view_of_a_state_is_the_generators(musa):
    musa.manual_seed(11)
    torch.rand(3, device="musa")
    state = _random._PhiloxState(musa.get_rng_state())
    assert state.seed.item() == 11 and state.offset.item() == offset() > 0
    state.offset = state.offset + 4
    musa.set_rng_state(state.state)
    assert offset() == state.offset.item()
