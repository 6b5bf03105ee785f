# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rank's part of test_training.py: compares torch's engines with one process on the whole batch."""

from __future__ import annotations

import contextlib
import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

STEPS, ROWS = 4, 16  # ROWS: of the whole batch


def model(width: int = 32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(16, width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width), nn.Linear(width, 4)
    )


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(ROWS, 16, generator=generator)
    y = torch.randint(0, 4, (ROWS,), generator=generator)
    return x.to("musa"), y.to("musa")


def mine(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.chunk(dist.get_world_size())[dist.get_rank()]


def train(
    net: nn.Module, optimizer: torch.optim.Optimizer, part, steps=range(STEPS), around=contextlib.nullcontext
) -> list[float]:
    losses = []
    for step in steps:
        x, y = batch(step)
        optimizer.zero_grad()
        with around():
            loss = F.cross_entropy(net(part(x)), part(y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def reference(make_optimizer=lambda p: torch.optim.AdamW(p, lr=1e-2)) -> dict[str, torch.Tensor]:
    """Returns the weights after one process has trained on the whole batches."""
    net = model().to("musa")
    train(net, make_optimizer(net.parameters()), whole)
    return {name: value.detach() for name, value in net.state_dict().items()}


def close(ours: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], **tolerances) -> None:
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            ours[name], value, msg=lambda text, name=name: f"{name}: {text}", **tolerances
        )


# ---- data parallel


def ddp(**options) -> None:
    net = DistributedDataParallel(model().to("musa"), device_ids=[torch.musa.current_device()], **options)
    train(net, torch.optim.AdamW(net.parameters(), lr=1e-2), mine)
    close(net.module.state_dict(), reference(), rtol=1e-4, atol=1e-5)


def ddp_in_many_buckets() -> None:
    ddp(bucket_cap_mb=0.001)
    ddp(gradient_as_bucket_view=True, bucket_cap_mb=0.001)
    ddp(static_graph=True)
    ddp(find_unused_parameters=True)


def ddp_accumulates() -> None:
    net = DistributedDataParallel(model().to("musa"))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = (mine(tensor) for tensor in batch(0))
    half = len(x) // 2
    with net.no_sync():
        F.cross_entropy(net(x[:half]), y[:half]).backward()
    before = net.module[0].weight.grad.clone()
    F.cross_entropy(net(x[half:]), y[half:]).backward()
    parts = [torch.empty_like(before) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, before)
    assert not torch.equal(parts[0], parts[1])
    dist.all_gather(parts, net.module[0].weight.grad)
    assert torch.equal(parts[0], parts[1])
    optimizer.step()


def ddp_comm_hooks() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    # bf16_compress_hook is left out, because torch checks the backend's name and allows CUDA and XPU only.
    for hook, tolerance in ((default_hooks.allreduce_hook, 1e-5), (default_hooks.fp16_compress_hook, 2e-3)):
        net = DistributedDataParallel(model().to("musa"))
        net.register_comm_hook(None, hook)
        train(net, torch.optim.SGD(net.parameters(), lr=0.1), mine)
        expected = reference(lambda p: torch.optim.SGD(p, lr=0.1))
        close(net.module.state_dict(), expected, rtol=10 * tolerance, atol=tolerance)
    net = DistributedDataParallel(model().to("musa"))
    state = powerSGD_hook.PowerSGDState(
        process_group=None, matrix_approximation_rank=2, start_powerSGD_iter=2
    )
    net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    losses = train(net, torch.optim.SGD(net.parameters(), lr=0.1), mine, steps=[0] * 12)
    assert losses[-1] < losses[0]


def ddp_join() -> None:
    """The ranks have different numbers of batches."""
    from torch.distributed.algorithms.join import Join

    net = DistributedDataParallel(model().to("musa"))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with Join([net]):
        train(net, optimizer, mine, steps=range(2 + dist.get_rank()))
    weight = net.module[0].weight.detach()
    parts = [torch.empty_like(weight) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, weight)
    assert all(torch.equal(part, parts[0]) for part in parts)


def sync_batch_norm() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 2, 3)).to("musa")
    net = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain)))
    x = torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to("musa")
    plain(x).square().mean().backward()
    net(mine(x)).square().mean().backward()
    for (name, ours), expected in zip(net.module.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(
            ours.grad, expected.grad, rtol=1e-3, atol=1e-5, msg=lambda t, n=name: f"{n}: {t}"
        )
    torch.testing.assert_close(net.module[1].running_var, plain[1].running_var)


def zero_redundancy() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net = DistributedDataParallel(model().to("musa"))
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=1e-2)
    train(net, optimizer, mine)
    close(net.module.state_dict(), reference(), rtol=1e-4, atol=1e-5)


def digits() -> None:
    """The network of the digits example on the same batches, without dropout, which draws per rank."""
    import importlib.util
    from pathlib import Path

    path = Path(__file__).parents[2] / "examples" / "train_digits.py"
    spec = importlib.util.spec_from_file_location("train_digits", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    data, _ = example.load_data(0)

    def learn(net: nn.Module, part) -> list[float]:
        for layer in net.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        losses = []
        for begin in range(0, 512, 64):
            images, labels = (tensor[begin : begin + 64].to("musa") for tensor in data[:])
            optimizer.zero_grad()
            loss = F.cross_entropy(net(part(images)), part(labels))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    torch.manual_seed(0)
    alone = example.DigitsNet().to("musa")
    together = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone)))
    learn(together, mine)
    losses = learn(alone, whole)
    assert min(losses) < losses[0]
    close(together.module.state_dict(), alone.state_dict(), rtol=1e-3, atol=1e-4)


# ---- sharded


def full_state(net: nn.Module) -> dict[str, torch.Tensor]:
    return {
        name: value.full_tensor() if hasattr(value, "full_tensor") else value
        for name, value in net.state_dict().items()
    }


def fsdp2() -> None:
    from torch.distributed.fsdp import fully_shard

    net = model().to("musa")
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    train(net, torch.optim.AdamW(net.parameters(), lr=1e-2), mine)
    close(full_state(net), reference(), rtol=1e-4, atol=1e-5)


def fsdp2_mixed_precision() -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    net = model().to("musa")
    fully_shard(net, mp_policy=policy)
    losses = train(net, torch.optim.SGD(net.parameters(), lr=0.1), mine)
    # The same computation in one process, with weights in float32 and products in bfloat16.
    alone = model().to("musa")
    single = init_device_mesh("musa", (dist.get_world_size(), 1), mesh_dim_names=("copies", "shards"))[
        "shards"
    ]
    fully_shard(alone, mesh=single, mp_policy=policy)
    train(alone, torch.optim.SGD(alone.parameters(), lr=0.1), whole)
    close(full_state(net), full_state(alone), rtol=2e-2, atol=2e-3)
    assert losses[0] > 0 and net[0].weight.dtype is torch.float32


def fsdp2_offloads() -> None:
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    net = model()
    fully_shard(
        net, mesh=init_device_mesh("musa", (dist.get_world_size(),)), offload_policy=CPUOffloadPolicy()
    )
    train(net, torch.optim.AdamW(net.parameters(), lr=1e-2), mine)
    ours = {name: value.to("musa").full_tensor() for name, value in net.state_dict().items()}
    close(ours, reference(), rtol=1e-4, atol=1e-5)


def fsdp1() -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy

    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        net = FullyShardedDataParallel(
            model(), device_id=torch.musa.current_device(), sharding_strategy=strategy
        )
        train(net, torch.optim.AdamW(net.parameters(), lr=1e-2), mine)
        with FullyShardedDataParallel.summon_full_params(net):
            state = {
                name.removeprefix("_fsdp_wrapped_module."): value for name, value in net.state_dict().items()
            }
            close(state, reference(), rtol=1e-4, atol=1e-5)
    half = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    net = FullyShardedDataParallel(model(), device_id=torch.musa.current_device(), mixed_precision=half)
    losses = train(net, torch.optim.AdamW(net.parameters(), lr=1e-2), mine, steps=[0] * 10)
    assert losses[-1] < losses[0]


def sharded_grad_scaler() -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    half = MixedPrecision(param_dtype=torch.float16, reduce_dtype=torch.float16)
    net = FullyShardedDataParallel(model(), device_id=torch.musa.current_device(), mixed_precision=half)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = ShardedGradScaler(device="musa", init_scale=2.0**10)
    x, y = (mine(tensor) for tensor in batch(0))
    losses = []
    for step in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        if step == 3 and dist.get_rank() == 0:
            next(net.parameters()).grad[0] = float("inf")  # of one rank: every rank must skip the step
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] and scaler.get_scale() == 2.0**9


# ---- tensor and pipeline parallel


def tensor_parallel() -> None:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("musa", (dist.get_world_size(),))
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to("musa")
    net = parallelize_module(copy.deepcopy(plain), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x, _ = batch(0)
    ours, expected = net(x), plain(x)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    ours.square().mean().backward()
    expected.square().mean().backward()
    for got, want in zip(net.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(got.grad.full_tensor(), want.grad, rtol=1e-4, atol=1e-5)


def dtensor() -> None:
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("musa", (dist.get_world_size(),))
    x, _ = batch(0)
    sharded = distribute_tensor(x, mesh, [Shard(0)])
    torch.testing.assert_close(
        (sharded @ sharded.redistribute(mesh, [Replicate()]).T).full_tensor(), x @ x.T, rtol=1e-4, atol=1e-4
    )
    torch.testing.assert_close(
        sharded.redistribute(mesh, [Shard(1)]).to_local(), x.chunk(dist.get_world_size(), 1)[dist.get_rank()]
    )
    total = sharded.sum(0)
    assert isinstance(total.placements[0], Partial)
    torch.testing.assert_close(total.full_tensor(), x.sum(0), rtol=1e-4, atol=1e-4)
    torch.musa.manual_seed(7)
    random = torch.distributed.tensor.rand(8, 4, device_mesh=mesh, placements=[Shard(0)])
    parts = random.full_tensor().chunk(dist.get_world_size())
    assert not torch.equal(parts[0], parts[1])


def two_dimensional() -> None:
    """FSDP2 over one dimension of the mesh, tensor parallelism over the other."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("musa", (2, 2), mesh_dim_names=("data", "tensor"))
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to("musa")
    net = parallelize_module(
        copy.deepcopy(plain), mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()}
    )
    fully_shard(net, mesh=mesh["data"])

    def part(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.chunk(2)[mesh["data"].get_local_rank()]

    train(net, torch.optim.SGD(net.parameters(), lr=0.1), part)
    train(plain, torch.optim.SGD(plain.parameters(), lr=0.1), whole)
    close(full_state(net), dict(plain.state_dict()), rtol=1e-3, atol=1e-4)


def pipeline() -> None:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()).to("musa") for _ in range(size)]
    x, _ = batch(0)
    goal = torch.zeros(ROWS, 16, device="musa")
    expected = copy.deepcopy(nn.Sequential(*layers))
    F.mse_loss(expected(x), goal).backward()
    for schedule_of in (ScheduleGPipe, Schedule1F1B):
        layer = copy.deepcopy(layers[rank])
        stage = PipelineStage(layer, rank, size, torch.device("musa", rank))
        schedule = schedule_of(stage, n_microbatches=4, loss_fn=F.mse_loss)
        if rank == 0:
            schedule.step(x)
        elif rank == size - 1:
            schedule.step(target=goal)
        else:
            schedule.step()
        for got, want in zip(layer.parameters(), expected[rank].parameters(), strict=True):
            torch.testing.assert_close(got.grad, want.grad, rtol=1e-4, atol=1e-6)


# ---- checkpoints


def _sharded_with_optimizer() -> tuple[nn.Module, torch.optim.Optimizer]:
    from torch.distributed.fsdp import fully_shard

    net = model().to("musa")
    fully_shard(net)
    return net, torch.optim.AdamW(net.parameters(), lr=1e-2)


def save_checkpoint(folder: str, in_background: bool) -> dict[str, torch.Tensor]:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict

    net, optimizer = _sharded_with_optimizer()
    train(net, optimizer, mine)
    weights, moments = get_state_dict(net, optimizer)
    state = {"model": weights, "optimizer": moments}
    if in_background:
        dcp.async_save(state, checkpoint_id=folder).result()
    else:
        dcp.save(state, checkpoint_id=folder)
    train(net, optimizer, mine, steps=range(STEPS, STEPS + 2))
    return {name: value.cpu() for name, value in full_state(net).items()}


def load_checkpoint(folder: str) -> dict[str, torch.Tensor]:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    net, optimizer = _sharded_with_optimizer()
    weights, moments = get_state_dict(net, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    train(net, optimizer, mine, steps=range(STEPS, STEPS + 2))
    return {name: value.cpu() for name, value in full_state(net).items()}


# ---- functions of torch.distributed


def functional_collectives() -> None:
    import torch.distributed._functional_collectives as funcol
    import torch.distributed.nn.functional as dist_nn

    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((4, 2), float(rank + 1), device="musa")
    total = size * (size + 1) / 2
    assert (funcol.all_reduce(x, "sum", dist.group.WORLD) == total).all()
    assert funcol.all_gather_tensor(x, 0, dist.group.WORLD).shape == (4 * size, 2)
    assert (funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD) == total).all()
    assert (funcol.all_reduce_coalesced([x, x], "avg", dist.group.WORLD)[1] == total / size).all()
    assert funcol.all_to_all_single(x, None, None, dist.group.WORLD).shape == x.shape
    assert (funcol.broadcast(x, 1, dist.group.WORLD) == 2).all()

    x.requires_grad_()
    dist_nn.all_reduce(x * 2).sum().backward()
    assert (x.grad == 2 * size).all()
    x.grad = None
    torch.stack(dist_nn.all_gather(x)).square().sum().backward()
    assert (x.grad == 2 * size * x).all()

    compiled = torch.compile(
        lambda t: funcol.all_reduce(t, "sum", dist.group.WORLD) + 1, backend="aot_eager", fullgraph=True
    )
    assert (compiled(x.detach()) == total + 1).all()


def objects() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    gathered: list = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "tensor": torch.ones(2, device="musa") * rank})
    assert [one["rank"] for one in gathered] == list(range(size))
    values = [rank, "text"] if rank == 0 else [None, None]
    dist.broadcast_object_list(values, src=0)
    assert values == [0, "text"]
    out: list = [None]
    dist.scatter_object_list(out, [f"for {other}" for other in range(size)] if rank == 0 else None, src=0)
    assert out == [f"for {rank}"]
