# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A third-party op pack: built as a wheel against the installed packages, installed, discovered, listed and
used.

It is installed into a new virtual environment that has the packages of the current one. With
`MUSA_TEST_WHEELS=<directory>` the wheels in that directory are installed there too and come first, so that
they are tested.
"""

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.plugins.packs import Environment, build_wheel, write_pack

SOURCES = Path(__file__).resolve().parents[2] / "examples" / "op_pack"

pytestmark = [pytest.mark.once, pytest.mark.slow]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(SOURCES, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("environment"))
    ready = os.environ.get("MUSA_TEST_WHEELS")
    environment.install(wheel, *(sorted(Path(ready).glob("*.whl")) if ready else ()))
    return environment


def test_the_wheel_holds_one_library_and_fits_every_python(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".so")] == ["musa_demo_pack/lib/libmusa_demo_pack.so"]
    assert "-py3-none-" in wheel.name


def test_the_library_names_no_directory_of_the_build_machine(wheel, tmp_path):
    library = zipfile.ZipFile(wheel).extract("musa_demo_pack/lib/libmusa_demo_pack.so", tmp_path)
    content = Path(library).read_bytes()
    expected = b"$ORIGIN:$ORIGIN/../../musa_runtime/lib:$ORIGIN/../../torch/lib\0"
    assert expected in content


def test_the_pack_is_discovered_and_listed(environment):
    rows = json.loads(environment.run("-m", "torch_musa", "packs", "--json", interpreter=True))
    (row,) = [row for row in rows if row["name"] == "demo"]
    assert (row["dist"], row["version"]) == ("musa-demo-pack", "0.3.0")
    assert (row["status"], row["error"]) == ("loaded", None)
    assert (row["providers"], row["ops"]) == (["demo"], 4)
    assert row["summary"] == "relu, and operators of its own"


def test_its_kernel_serves_the_calls_that_it_accepts_and_the_next_provider_the_rest(environment):
    code = """
import torch
x = torch.randn(64, requires_grad=True)
y = x.detach().to("musa").requires_grad_()
torch.relu(x).sum().backward()
torch.relu(y).sum().backward()
assert torch.equal(torch.relu(x), torch.relu(y).cpu()) and torch.equal(x.grad, y.grad.cpu())
calls = {c["provider"]: c["calls"] for c in torch.musa.ops.explain("aten::relu")["candidates"]}
assert calls["demo"] == 2, calls
integers = torch.tensor([-1, 2], device="musa")
assert torch.relu(integers).tolist() == [0, 2]
after = {c["provider"]: c["calls"] for c in torch.musa.ops.explain("aten::relu")["candidates"]}
assert after["demo"] == 2 and sum(after.values()) == sum(calls.values()) + 1, after
print(torch.ops.musa_demo.scale_shift(torch.ones(2, device="musa"), 2.0, 1.0).tolist())
"""
    assert environment.run("-c", code) == "[3.0, 3.0]\n"


def test_an_operator_of_each_kind_gives_the_cpus_result(environment):
    code = """
import torch
from torch.musa import demo
torch.manual_seed(0)
x, bias = torch.randn(5, 7), torch.randn(7)
here = x.to("musa")
torch.testing.assert_close(demo.bias_relu(here, bias.to("musa")).cpu(), torch.relu(x + bias), rtol=0, atol=0)
torch.testing.assert_close(demo.bias_relu(here.t(), bias[:5].to("musa")).cpu(), torch.relu(x.t() + bias[:5]))
torch.testing.assert_close(demo.softmax_rows(here).cpu(), x.softmax(-1))
leaf, expected = here.requires_grad_(), x.clone().requires_grad_()
demo.mean_square(leaf).backward()
expected.square().mean().backward()
torch.testing.assert_close(leaf.grad.cpu(), expected.grad)
for wrong in (bias[:3].to("musa"), bias):
    try:
        demo.bias_relu(here, wrong)
    except ValueError as error:
        print("expected float32 tensors of one device" in str(error))
"""
    assert environment.run("-c", code) == "True\nTrue\n"
    memory = {"MUSA_EMULATOR_MEMORY": "strict", "TORCH_MUSA_FALLBACK": "error"}
    assert environment.run("-c", code, **memory) == "True\nTrue\n"


def test_it_runs_at_import_and_offers_a_module_of_torch_musa(environment):
    code = """
import sys
import torch
lazy = ("musa_demo_pack.plugin", "musa_demo_pack.functions", "pluggy")
print(torch.musa.has_demo, [name for name in lazy if name in sys.modules], torch.musa.is_initialized())
from torch.musa.demo import scale_shift
print(scale_shift(torch.ones(2, device="musa"), shift=3.0).tolist())
assert scale_shift is torch.musa.demo.scale_shift
"""
    assert environment.run("-c", code) == "True [] False\n[4.0, 4.0]\n"
    code = "import torch; print(hasattr(torch.musa, 'has_demo'), hasattr(torch.musa, 'demo'))"
    assert environment.run("-c", code, TORCH_MUSA_DISABLE_PACKS="demo") == "False False\n"


RANKS = """
import torch
candidates = torch.musa.ops.explain("aten::relu")["candidates"]
print(*[c["provider"] for c in sorted(candidates, key=lambda c: (c["rank"] is None, c["rank"]))][:2])
"""


def test_its_rank_puts_it_before_mudnn(environment):
    assert environment.run("-c", RANKS) == "demo mudnn\n"


@pytest.mark.parametrize(
    ("contract", "hook", "order"),
    [
        ("v1", "", "demo mudnn"),  # the order of version 1
        ("v2", "", "mudnn demo"),
        ("v2", "@hookimpl\ndef musa_rank(): return 99\n", "demo mudnn"),
        ("v2", "@hookimpl\ndef musa_rank(): return 101\n", "mudnn demo"),
    ],
)
def test_packs_of_either_contract_load_by_absolute_paths_and_take_their_place(
    environment, tmp_path, contract, hook, order
):
    found = "import musa_demo_pack as p; print(next(iter(p.__path__)))"
    library = environment.run("-c", found).strip() + "/lib/libmusa_demo_pack.so"
    code = "from musa_demo_pack import plugin\nfrom musa_runtime.hookspecs import hookimpl\n@hookimpl\n"
    code += f"def musa_libraries(): return [plugin.musa_libraries()[0], {library!r}]\n{hook}"
    write_pack(tmp_path, "old", code, contract)
    variables = {"PYTHONPATH": str(tmp_path), "TORCH_MUSA_DISABLE_PACKS": "demo"}
    rows = json.loads(environment.run("-m", "torch_musa", "packs", "--json", **variables))
    (row,) = [row for row in rows if row["name"] == "old"]
    assert (row["status"], row["error"], row["providers"]) == ("loaded", None, ["demo"])
    assert environment.run("-c", RANKS, **variables) == order + "\n"


def test_the_command_line_lists_the_providers_of_operators(environment):
    rows = json.loads(environment.run("-m", "torch_musa", "ops", "aten::relu", "--json"))
    row = next(row for row in rows if row["op"] == "aten::relu")
    assert set(row) == {"op", "provider", "origin", "candidates", "calls"}
    assert row["provider"] == "demo" and row["candidates"][0] == "demo" and len(row["candidates"]) > 1
    assert "computes" in environment.run("-m", "torch_musa", "doctor", interpreter=True)


@pytest.mark.parametrize("way", ["environment", "prefer", "disabled"])
def test_the_user_may_choose_another_provider(environment, way):
    variables = {
        "environment": {"TORCH_MUSA_OPS": "aten::relu=host"},
        "disabled": {"TORCH_MUSA_DISABLE_PACKS": "demo"},
    }
    prefer = 'torch.musa.ops.prefer("aten::relu", "host")' if way == "prefer" else ""
    code = f"""
import torch
{prefer}
torch.relu(torch.ones(2, device="musa"))
told = torch.musa.ops.explain("aten::relu")
print(told["provider"], [c["calls"] for c in told["candidates"] if c["provider"] == "demo"])
"""
    told = environment.run("-c", code, **variables.get(way, {}))
    if way == "disabled":
        assert told.endswith(" []\n") and not told.startswith("demo"), told
    else:
        assert told == "host [0]\n"
