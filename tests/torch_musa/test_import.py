# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`import torch` with torch_musa installed is fast, uses no device, and does not change CPU work, with an SDK
or without."""

import re

import pytest

from tests.harness.subprocesses import run_code, run_python

pytestmark = pytest.mark.once

NO_SDK = "/nonexistent/musa"

# Work without musa tensors for which torch nevertheless calls its accelerator.
CPU_WORK = """
import io, os, warnings
import torch
from torch.utils.data import DataLoader, TensorDataset


torch.manual_seed(7)
first = torch.rand(3)
torch.manual_seed(7)
assert torch.equal(first, torch.rand(3))
torch.seed()

with torch.random.fork_rng(devices=[]):
    torch.rand(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
model(torch.rand(2, 4)).sum().backward()
torch.utils.checkpoint.checkpoint(model, torch.rand(2, 4), use_reentrant=False).sum().backward()

buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
buffer.seek(0)
torch.load(buffer)

data = TensorDataset(torch.arange(8.0))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch warns where there is nothing to pin for
    for workers in (0, 2):
        batches = [batch for (batch,) in DataLoader(data, batch_size=4, pin_memory=True, num_workers=workers)]
        assert torch.equal(torch.cat(batches), torch.arange(8.0))

child = os.fork()
if child == 0:
    ok = bool((torch.ones(3) @ torch.ones(3)) == 3)
    torch.manual_seed(1)
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0

torch.accelerator.is_available()
torch.accelerator.device_count()
torch.accelerator.current_accelerator()
with torch.autocast("cpu", dtype=torch.bfloat16):
    model(torch.rand(2, 4))
print("done")
"""


def test_cpu_work_is_unharmed():
    assert run_code(CPU_WORK) == "done\n"


def test_cpu_work_is_unharmed_without_sdk():
    assert run_code(CPU_WORK, MUSA_HOME=NO_SDK) == "done\n"


def test_straight_after_import_the_accelerator_answers():
    code = """
    import torch
    assert torch.accelerator.current_accelerator() == torch.device("musa")
    assert torch.accelerator.is_available() and torch.musa.is_available()
    assert torch.accelerator.device_count() == torch.musa.device_count() >= 1
    assert not torch.musa.is_initialized() and torch.musa._initialized is False
    torch.manual_seed(0)
    assert not torch.musa.is_initialized(), "seeding touched the device"
    pinned = torch.empty(2, pin_memory=True)
    assert pinned.is_pinned() and pinned.device.type == "cpu"
    from torch.utils.data import DataLoader
    assert all(batch.is_pinned() for batch in DataLoader(torch.ones(4, 2), pin_memory=True))
    print(torch.ones(2, device="musa").sum().item(), torch.musa._initialized, torch.musa.is_initialized())
    """
    assert run_code(code) == "2.0 True True\n"


def test_seeds_set_before_the_first_use_are_carried_out():
    code = """
    import torch
    torch.manual_seed(3)
    torch.musa.manual_seed_all(5)
    early = torch.rand(4, device="musa").cpu()
    torch.musa.manual_seed_all(5)
    assert torch.equal(early, torch.rand(4, device="musa").cpu())
    torch.manual_seed(3)
    assert torch.musa.initial_seed() == 3
    assert not torch.equal(early, torch.rand(4, device="musa").cpu())
    """
    run_code(code)


def test_import_touches_no_device_and_loads_no_pack_or_operator_library():
    code = """
    import sys, torch
    maps = open("/proc/self/maps").read()
    print([name for name in ("pluggy", "torch_musa.plugins", "torch_musa.doctor") if name in sys.modules])
    print([name for name in ("libmusa_native_ops", "libmudnn", "libmccl") if name in maps])
    print("libmusa_runtime.so" in maps, torch.musa.is_initialized())
    """
    assert run_code(code).splitlines() == ["[]", "[]", "True False"]


def test_import_loads_only_modules_of_the_installed_packages():
    """`python -m benchmarks --only startup` measures the time of the import."""
    code = "import sys, torch; print(*sorted(sys.modules))"
    without = set(run_code(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").split())
    added = set(run_code(code).split()) - without
    assert {"torch_musa", "musa_runtime", "torch.musa"} <= added
    # musa-distributed adds musa to the devices of torch's backend "fake", which these modules register.
    fake = {"torch.testing._internal.distributed", "torch.testing._internal.distributed.fake_pg"}
    ours = re.compile(r"(torch_musa|musa_\w+|torch\.musa|torch\.backends\.\w+)(\.|$)")
    assert [name for name in sorted(added - fake) if not ours.match(name)] == []


@pytest.mark.parametrize(
    "order", ["import torch", "import torch_musa", "import musa_runtime; musa_runtime.load()"]
)
@pytest.mark.parametrize("autoload", ["0", "1"])
def test_any_first_import_gives_the_same(order, autoload):
    code = f"""
    {order}
    import torch, torch_musa
    assert torch.musa is torch_musa.musa and torch_musa._impl.failure is None
    import torch.musa.random
    assert torch.get_device_module("musa") is torch.musa
    print(torch.device("musa", 0), hasattr(torch.Tensor, "musa"), hasattr(torch.nn.Module, "musa"))
    """
    assert run_code(code, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload) == "musa:0 True True\n"


def test_autoload_can_be_switched_off():
    code = """
    import sys, torch
    print(hasattr(torch, "musa"), "musa_runtime" in sys.modules)
    """
    assert run_code(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False False\n"


def test_without_sdk_musa_is_unavailable_and_says_why_at_first_use():
    code = """
    import torch
    from musa_runtime.errors import SdkNotFoundError
    assert not torch.musa.is_available() and torch.musa.device_count() == 0
    assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0
    assert torch.musa.is_bf16_supported() is False and torch.musa.get_arch_list() == []
    torch.musa.manual_seed_all(1); torch.musa.manual_seed(1); torch.musa.empty_cache()
    assert torch.musa.memory_allocated.__call__ and torch.musa.is_initialized() is False
    uses = [
        lambda: torch.ones(2, device="musa"),
        lambda: torch.ones(2).to("musa"),
        lambda: torch.ones(2).musa(),
        lambda: torch.nn.Linear(2, 2).to("musa"),
        lambda: torch.musa.current_device(),
        lambda: torch.musa.set_device(0),
        lambda: torch.musa.synchronize(),
        lambda: torch.musa.Stream(),
        lambda: torch.musa.Event(),
        lambda: torch.musa.get_rng_state(),
        lambda: torch.musa.mem_get_info(),
        lambda: torch.musa.ops.explain("aten::mm"),
        lambda: torch.musa.init(),
    ]
    for number, use in enumerate(uses):
        try:
            use()
        except SdkNotFoundError as error:
            assert "/nonexistent/musa: no such directory" in str(error), error
            assert "\\nFix: " in str(error)
        else:
            raise AssertionError(f"use {number} did not raise")
    assert torch.ones(2).sum() == 2
    """
    run_code(code, MUSA_HOME=NO_SDK)


def test_without_sdk_pinned_memory_is_what_a_torch_without_accelerator_says():
    code = """
    import torch
    try:
        print(torch.empty(2, pin_memory=True).is_pinned())
    except RuntimeError as error:
        print("RuntimeError")
    print(torch.empty(2).is_pinned())
    """
    plain = run_code(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert run_code(code, MUSA_HOME=NO_SDK) == plain


def test_a_failure_to_activate_never_breaks_import_torch():
    code = """
    import sys, warnings
    class Broken:
        def find_spec(self, name, path, target=None):
            if name == "musa_runtime":
                raise ZeroDivisionError("a broken installation")
    sys.meta_path.insert(0, Broken())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import torch
    assert "a broken installation" in str([str(w.message) for w in told])
    assert torch.ones(2).sum() == 2
    assert torch.empty(0).device.type == "cpu"
    import torch_musa
    print(repr(torch_musa._impl.failure))
    """
    assert run_code(code) == "ZeroDivisionError('a broken installation')\n"


def test_another_torch_minor_loads_no_library_and_is_reported_at_each_use():
    code = """
    import warnings
    from musa_runtime import _torch_minor
    _torch_minor.TORCH_MINOR = "2.99"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import torch
    assert sum("need: torch 2.99.*" in str(warning.message) for warning in told) == 1, told
    from musa_runtime.errors import TorchVersionError
    assert torch.musa.is_available() is False and torch.musa.device_count() == 0
    try:
        torch.ones(2, device="musa")
    except RuntimeError as error:
        assert "need: torch 2.99.*" in str(error), error
    try:
        torch.musa.synchronize()
    except TorchVersionError as error:
        print("need: torch 2.99.*" in str(error))
    assert "libmusa" not in open("/proc/self/maps").read()
    """
    assert run_code(code) == "True\n"


def test_another_torch_minor_leaves_an_accelerator_of_torch_alone():
    code = """
    import os, warnings
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch
    from musa_runtime import _torch_minor
    _torch_minor.TORCH_MINOR = "2.99"
    torch.accelerator.is_available = lambda: True  # a GPU that this torch drives
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import torch_musa
    print(torch._C._get_privateuse1_backend_name(), len(told), torch.musa.is_available())
    """
    assert run_code(code) == "privateuseone 1 False\n"


def test_use_after_fork_is_refused_with_the_cure():
    code = """
    import os, torch
    torch.ones(2, device="musa").sum().item()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        told = []
        for use in (lambda: torch.ones(2, device="musa"), torch.musa.synchronize, torch.musa.current_device):
            try:
                use()
                told.append("no error")
            except RuntimeError as error:
                told.append("spawn" if "'spawn'" in str(error) else str(error))
        told.append(str(torch.ones(3).sum().item()))
        told.append(str(torch.musa._initialized))
        torch.manual_seed(1)  # calls torch.musa._is_in_bad_fork, and does not use the device
        os.write(write, "|".join(told).encode())
        os._exit(0)
    os.waitpid(child, 0)
    print(os.read(read, 1000).decode())
    print(torch.ones(2, device="musa").sum().item())
    """
    assert run_code(code).splitlines() == ["spawn|spawn|spawn|3.0|False", "2.0"]


def test_a_fork_before_the_first_use_may_use_the_device():
    code = """
    import os, torch
    torch.manual_seed(0)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.ones(2, device="musa").sum().item() == 2 else 1)
    print(os.waitpid(child, 0)[1], torch.ones(2, device="musa").sum().item())
    """
    assert run_code(code) == "0 2.0\n"


def test_loader_workers_forked_after_the_first_use_do_cpu_work():
    code = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    torch.ones(2, device="musa")
    loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=4, num_workers=2, pin_memory=True)
    print(sum(batch.to("musa", non_blocking=True).sum().item() for (batch,) in loader))
    """
    assert run_code(code) == "28.0\n"


def test_a_worker_that_is_spawned_may_use_the_device(tmp_path):
    (tmp_path / "spawned.py").write_text(
        "import torch\n"
        "def work(queue): queue.put(torch.ones(3, device='musa').sum().item())\n"
        "if __name__ == '__main__':\n"
        "    import torch.multiprocessing as mp\n"
        "    torch.ones(1, device='musa')\n"
        "    context = mp.get_context('spawn')\n"
        "    queue = context.SimpleQueue()\n"
        "    process = context.Process(target=work, args=(queue,))\n"
        "    process.start(); process.join()\n"
        "    print(queue.get(), process.exitcode)\n"
    )
    done = run_python(str(tmp_path / "spawned.py"))
    assert done.stdout == "3.0 0\n", done.stderr
