# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Places where torch.distributed selects by the device type serve musa, or are listed with the reason."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from textwrap import dedent

import pytest
import torch.distributed as dist

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

FOLDER = Path(dist.__file__).parent

# The files of torch.distributed whose code names cuda, and what that means for musa. "served": another
# branch serves musa, and a test of this suite runs it. "registered": this project adds musa to a table.
# "inert": only logging, a default argument, or an optimization that musa goes without. Other texts say why
# musa cannot be served from outside.
FILES = {
    "distributed_c10d.py": "registered",
    "device_mesh.py": "served",
    "_functional_collectives.py": "inert",
    "_dist2.py": "an experiment with Gloo and NCCL only",
    "_local_tensor/__init__.py": "served, but random operators of DTensor call torch.cuda.current_device()",
    "_symmetric_memory/__init__.py": "memory of peers that kernels access: MCCL has no such call",
    "_symmetric_memory/_rocshmem_triton.py": "a library for ROCm",
    "_shard/sharded_tensor/api.py": "deprecated; its device is the CPU or torch.cuda.current_device()",
    "_shard/sharded_tensor/_ops/tensor_ops.py": "deprecated; the same",
    "_state_dict_utils.py": "state dicts that are pinned and shared are registered with cudart",
    "_tools/mem_tracker.py": "inert",
    "_tools/runtime_estimator.py": "measures operators with torch.cuda events",
    "_tools/sac_estimator.py": "counts the storages of cuda tensors only",
    "algorithms/ddp_comm_hooks/powerSGD_hook.py": "inert",
    "c10d_logger.py": "inert",
    "checkpoint/_state_dict_stager.py": "pin_memory is ignored with a warning: torch pins with cudart",
    "checkpoint/filesystem.py": "served",
    "checkpoint/optimizer.py": "inert",
    "collective_utils.py": "the comparison of generators reads the state of torch.cuda's or the CPU's",
    "fsdp/_common_utils.py": "served",
    "fsdp/_fully_shard/_fsdp_collectives.py": "symmetric memory of NCCL",
    "fsdp/_fully_shard/_fsdp_param_group.py": "inert",
    "fsdp/_fully_shard/_fsdp_state.py": "served",
    "fsdp/_fully_shard/_fully_shard.py": "inert",
    "fsdp/sharded_grad_scaler.py": "served",
    "launcher/api.py": "inert",
    "nn/api/remote_module.py": "remote modules return cuda tensors; on musa they return CPU tensors",
    "nn/jit/templates/remote_module_template.py": "the same",
    "rpc/backend_registry.py": "device maps of TensorPipe are for cuda; CPU tensors are served",
    "rpc/options.py": "the same",
    "rpc/server_process_global_profiler.py": "the legacy profiler of RPC",
    "run.py": "served",
    "tensor/_dispatch.py": "served",
    "tensor/_ops/strategy_validation.py": "a tool of torch's developers",
    "tensor/parallel/style.py": "inert",
}


def names_cuda(path: Path) -> bool:
    """Whether code, not a docstring or comment, names torch.cuda or the device type."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and node.value in ("cuda", "torch.cuda"):
            return True
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.cuda":
            return True
    return False


def test_every_file_that_names_cuda_has_a_row():
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py") if names_cuda(path)}
    assert found - set(FILES) == set(), "add a row: does the file serve musa, and if not, why?"
    assert len(found) > 20


def test_a_file_without_a_row_would_be_noticed(tmp_path):
    (tmp_path / "code.py").write_text('if device.type == "cuda":\n    pass\n')
    (tmp_path / "prose.py").write_text('"""Uses torch.cuda or "cuda"."""  # torch.cuda\n')
    assert names_cuda(tmp_path / "code.py") and not names_cuda(tmp_path / "prose.py")


# ---- tables of distributed_c10d

# Whether a backend of torch serves musa, or the reason why it does not.
BACKENDS = {
    "gloo": True,
    "fake": True,
    "mccl": True,
    "nccl": "cuda only",
    "xccl": "xpu only",
    "ucc": "not in torch's wheels",
    "mpi": "not in torch's wheels",
}


@pytest.mark.parametrize("backend", dist.Backend.backend_capability)
def test_the_devices_of_a_backend(backend):
    assert ("musa" in dist.Backend.backend_capability[backend]) == (BACKENDS.get(backend) is True)


def test_the_default_backend_of_musa():
    assert dist.Backend.default_device_backend_map["musa"] == "mccl"
    assert dist.get_default_backend_for_device("musa") == "mccl"
    assert dist.Backend.default_device_backend_map["cpu"] == "gloo"


def test_torchs_own_registrations_are_kept():
    """torch identifies the types of its backends by these tables."""
    types = dist.Backend.backend_type_map
    assert types["gloo"] == dist.ProcessGroup.BackendType.GLOO
    assert types["fake"] == types["mccl"] == dist.ProcessGroup.BackendType.CUSTOM
    importlib.import_module("torch.testing._internal.distributed.fake_pg")  # registers "fake"

    assert dist.Backend.backend_capability["fake"].count("musa") == 1


BOUND = """
import torch, torch.distributed as dist
device = torch.device("musa", 0)
def start(backend, **more):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, **more)
"""


@pytest.mark.parametrize("default", ["mccl", "cpu:gloo,musa:mccl", None])
def test_a_group_for_cpu_tensors_beside_a_bound_one(default):
    code = f"""
    start({default!r}, device_id=device)
    group = dist.new_group(backend="gloo")
    x = torch.ones(3)
    dist.all_reduce(x, group=group)
    dist.barrier(group)
    dist.all_gather_object([None], "x", group=group)
    y = torch.ones(3, device=device)
    dist.all_reduce(y)
    try:
        dist.all_reduce(y, group=group)
    except RuntimeError as error:
        print(str(error).partition("Exception raised")[0])
    print(x.tolist(), y.tolist(), group._get_backend(torch.device("cpu")).name())
    dist.destroy_process_group()
    """
    out = run_code(BOUND + dedent(code))
    assert out.endswith("[1.0, 1.0, 1.0] [1.0, 1.0, 1.0] gloo\n") and "unsupported device type" in out, out


def test_gloo_as_the_default_group_of_a_bound_process():
    code = 'start("gloo", device_id=device)\nx = torch.ones(2)\ndist.all_reduce(x)\n'
    code += "dist.barrier()\nprint(x.tolist())"
    assert run_code(BOUND + code) == "[1.0, 1.0]\n"


@pytest.mark.parametrize("index", [256, 1 << 32])
def test_a_barrier_on_a_device_that_does_not_exist_names_it(index):
    code = f"""
    start("mccl")
    try:
        dist.barrier(device_ids=[{index}])
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    dist.destroy_process_group()
    """
    assert f"Invalid device musa:{index}" in run_code(BOUND + dedent(code))


FAKE = """
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("fake", rank=1, world_size=4)
"""


def test_a_simulated_job_shards_a_model():
    code = """
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("musa", (2, 2), mesh_dim_names=("dp", "tp"))
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)).to("musa")
    fully_shard(model, mesh=mesh["dp"])
    model(torch.ones(2, 8, device="musa")).sum().backward()
    torch.optim.SGD(model.parameters()).step()
    print([tuple(p.to_local().shape) for p in model.parameters()], dist.get_world_size())
    """
    out = run_code(FAKE + dedent(code))
    assert out == "[(4, 8), (4,), (2, 8), (2,)] 4\n"


def test_a_simulated_job_uses_every_collective():
    code = """
    x = torch.ones(4, device="musa")
    for call in (
        lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0), lambda: dist.reduce(x, 0),
        lambda: dist.all_gather([torch.empty_like(x) for _ in range(4)], x),
        lambda: dist.all_to_all_single(torch.empty_like(x), x),
        lambda: dist.send(x, 2), lambda: dist.recv(x, 2), lambda: dist.barrier(),
    ):
        call()
    print(dist.group.WORLD._device_types.count(torch.device("musa")))
    """
    assert run_code(FAKE + dedent(code)) == "1\n"


def test_the_ranks_of_one_process():
    """LocalTensorMode computes the parts of all ranks in one process, which must be rank 0."""
    code = """
    from torch.distributed._local_tensor import LocalTensorMode
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    with LocalTensorMode(4):
        mesh = init_device_mesh("musa", (4,))
        x = distribute_tensor(torch.arange(8.0, device="musa"), mesh, [Shard(0)])
        whole = (x + 1).redistribute(mesh, [Replicate()]).to_local()
        print([part.tolist() == list(range(1, 9)) for part in whole._local_tensors.values()])
    """
    assert run_code(FAKE.replace("rank=1", "rank=0") + dedent(code)) == "[True, True, True, True]\n"
