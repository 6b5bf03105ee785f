# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa tune` and the file that it writes: the faster provider is first afterwards, a wrong
one last, an interrupted run continues, and a file of another environment is ignored with a warning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from musa_runtime import config, measured_orders
from tests.harness.subprocesses import run_forked, run_module
from tests.musa_emulator.sdk import tool
from tests.plugins.packs import write_pack
from torch_musa.tune import choice

pytestmark = pytest.mark.once

# Three providers, of which one sleeps and one is wrong. Variables make the one that sleeps interrupt or end
# the process. They compute on the host, which the emulator's default mode allows.
PACKS = """
#include <musa_runtime/stable_pack.h>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <unistd.h>
namespace {
using torch::stable::Tensor;
template <typename Function>
Tensor apply(const Tensor& self, Function function) {
  Tensor out = musa_runtime::stable::new_empty(self, self.sizes());
  for (int64_t i = 0; i < self.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = function(self.const_data_ptr<float>()[i]);
  }
  return out;
}
float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }
Tensor tanh(const Tensor& self) { return apply(self, [](float x) { return std::tanh(x); }); }
Tensor sigmoid(const Tensor& self) { return apply(self, sigmoid_of); }
Tensor slow_tanh(const Tensor& self) {
  usleep(2000);
  if (std::getenv("TOY_INTERRUPT") != nullptr) {
    std::raise(SIGINT);
  }
  if (std::getenv("TOY_EXIT") != nullptr) {
    _Exit(77);
  }
  return tanh(self);
}
Tensor slow_sigmoid(const Tensor& self) { usleep(2000); return sigmoid(self); }
Tensor wrong_tanh(const Tensor& self) { return apply(self, [](float x) { return std::sin(x); }); }
bool is_float(const Tensor& self) {
  return self.scalar_type() == torch::headeronly::ScalarType::Float && self.is_contiguous();
}
MUSA_STABLE_OP_PACK(toy_slow, pack) {
  pack.impl<&slow_tanh, &is_float>("aten::tanh");
  pack.impl<&slow_sigmoid, &is_float>("aten::sigmoid");
}
MUSA_STABLE_OP_PACK(toy_fast, pack) {
  pack.impl<&tanh, &is_float>("aten::tanh");
  pack.impl<&sigmoid, &is_float>("aten::sigmoid");
}
MUSA_STABLE_OP_PACK(toy_wrong, pack) {
  pack.impl<&wrong_tanh, &is_float>("aten::tanh");
}
} // namespace
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(toys LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(musa_runtime 0.1 CONFIG REQUIRED)
musa_add_op_pack(toys STABLE SOURCES toys.cpp)
"""
HOOKS = """
from musa_runtime.hookspecs import hookimpl
@hookimpl
def musa_libraries(): return [{library!r}]
"""


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, str]:
    """Variables for processes in which the toy providers are the only ones that a pack offers."""
    sources = tmp_path_factory.mktemp("toys")
    (sources / "toys.cpp").write_text(PACKS)
    (sources / "CMakeLists.txt").write_text(PROJECT)
    command = [tool("cmake"), "-S", sources, "-B", sources / "build", "-G", "Ninja"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}"]
    command += [f"-Dmusa_runtime_DIR={config.cmake_dir()}"]
    for line in (command, [tool("cmake"), "--build", sources / "build"]):
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path_factory.mktemp("site")
    write_pack(site, "toys", HOOKS.format(library=str(sources / "build" / "libtoys.so")))
    others = ",".join(sorted(point.name for point in metadata.entry_points(group="torch_musa.plugins.v2")))
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")])),
        "TORCH_MUSA_DISABLE_PACKS": others,
        "TORCH_MUSA_FALLBACK": "allow",
    }


@pytest.fixture
def environment(toys: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**toys, "TORCH_MUSA_OPS_FILE": str(tmp_path / "orders.json")}


BOTH = ("tune", "--operators", "aten::tanh", "aten::sigmoid")


def tune(environment: dict[str, str], *arguments: str, **changes: str | None) -> subprocess.CompletedProcess:
    return run_module("torch_musa", *(arguments or BOTH), **{**environment, **changes})


def content(environment: dict[str, str]) -> dict:
    return json.loads(Path(environment["TORCH_MUSA_OPS_FILE"]).read_text())


EXPLAIN = """
import torch, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = torch.tanh(torch.ones(3, device="musa"))
for op in ("aten::tanh", "aten::tanh_", "aten::sigmoid"):
    found = torch.musa.ops.explain(op)
    print(op, found["provider"], found["origin"] or "-")
print(torch.musa.ops.explain("aten::tanh")["reason"])
print(*[w.message for w in caught])
"""


def explained(environment: dict[str, str], **changes: str | None) -> list[str]:
    done = run_forked(EXPLAIN, **{**environment, **changes})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_faster_provider_is_chosen_and_a_wrong_one_reported(environment, tmp_path) -> None:
    before = explained(environment, TORCH_MUSA_OPS_FILE="none")
    assert before[0] == "aten::tanh toy_fast default"  # alphabetically, at equal rank
    # The slow provider becomes the present order's first one, so that the order has to change.
    orders = {"aten::tanh": ["toy_wrong", "toy_slow", "toy_fast"], "aten::sigmoid": ["toy_slow", "toy_fast"]}
    write_orders(environment, orders)
    done = tune(environment)
    assert done.returncode == 0, done.stderr
    rows = content(environment)["operators"]
    assert rows["aten::tanh"]["order"] == ["toy_fast", "toy_slow", "toy_wrong"]
    assert rows["aten::tanh"]["before"] == orders["aten::tanh"]
    assert rows["aten::sigmoid"]["order"] == ["toy_fast", "toy_slow"]
    assert "elements differ" in rows["aten::tanh"]["wrong"]["toy_wrong"]
    assert "WRONG result of toy_wrong" in done.stdout and "2 orders changed" in done.stdout
    times = rows["aten::sigmoid"]["microseconds"]["small float32"]
    assert times["toy_slow"] > 2000 and set(times) == {"toy_slow", "toy_fast"}
    assert not os.path.exists(environment["TORCH_MUSA_OPS_FILE"] + ".partial")
    # A second run keeps the choices.
    assert "0 orders changed" in tune(environment).stdout

    path = environment["TORCH_MUSA_OPS_FILE"]
    assert explained(environment) == [
        "aten::tanh toy_fast file",
        "aten::tanh_ composite -",
        "aten::sigmoid toy_fast file",
        f"measured order of {path}: toy_fast,toy_slow,toy_wrong",
        "",
    ]
    pinned = explained(environment, TORCH_MUSA_OPS="aten::tanh=toy_slow")
    assert pinned[0] == "aten::tanh toy_slow TORCH_MUSA_OPS" and pinned[2] == "aten::sigmoid toy_fast file"
    listed = run_module("torch_musa", "ops", "aten::tanh", **environment).stdout
    assert listed.splitlines()[0].endswith("order from") and f"Orders from a file: {path}" in listed
    checks = doctor(environment)
    assert (
        checks["measured orders"]["status"] == "ok" and "2 operators" in checks["measured orders"]["detail"]
    )


def write_orders(environment: dict[str, str], orders: dict[str, list[str]], **identity: object) -> None:
    code = f"""
import json, sys, torch, warnings
torch.musa.init()
from musa_runtime import measured_orders
from torch_musa import plugins
packs = {{r.dist: r.version for r in plugins.records() if r.status == "loaded" and r.providers}}
identity = {{**measured_orders.identity(packs), **{identity!r}}}
operators = {{op: {{"order": order}} for op, order in {orders!r}.items()}}
content = {{"format": measured_orders.FORMAT, "identity": identity, "operators": operators}}
json.dump(content, open({environment["TORCH_MUSA_OPS_FILE"]!r}, "w"))
"""
    done = run_forked(code, **{**environment, "TORCH_MUSA_OPS_FILE": "none"})
    assert done.returncode == 0, done.stderr


def doctor(environment: dict[str, str]) -> dict[str, dict]:
    return {
        row["title"]: row
        for row in json.loads(run_module("torch_musa", "doctor", "--json", **environment).stdout)
    }


def test_an_interrupted_run_continues_with_the_same_command(environment) -> None:
    done = tune(environment, TOY_INTERRUPT="1")
    assert done.returncode == 130, done.stderr
    assert "Interrupted. Fix: the same command continues" in done.stdout
    assert list(content(environment)["operators"]) == ["aten::sigmoid"]
    done = tune(environment)
    assert done.returncode == 0 and "1 results are from an earlier run" in done.stdout
    assert list(content(environment)["operators"]) == ["aten::sigmoid", "aten::tanh"]


def test_an_operator_that_ends_the_process_is_left_out_by_the_next_run(environment) -> None:
    assert tune(environment, TOY_EXIT="1").returncode == 77
    done = tune(environment)
    assert done.returncode == 0, done.stderr
    assert "the process ended" in content(environment)["not_measured"]["aten::tanh"]
    assert list(content(environment)["operators"]) == ["aten::sigmoid"]
    assert "aten::tanh" in content(environment)["not_measured"]
    # Only the named operator is measured again; the file keeps the other one.
    done = tune(environment, "tune", "--operators", "aten::tanh")
    assert done.returncode == 0 and "1 of 1 operators measured" in done.stdout
    assert list(content(environment)["operators"]) == ["aten::sigmoid", "aten::tanh"]


@pytest.mark.parametrize(
    ("part", "value", "named"),
    [
        ("torch", "2.9", "torch: measured with 2.9, now with"),
        ("packs", {"pack-toys": "0.1"}, "pack-toys: measured with 0.1, now with 1.2"),
        ("packs", {}, "pack-toys: measured without it, now with 1.2"),
        ("device", {"name": "MTT S0"}, "device's name: measured with MTT S0, now with"),
    ],
)
def test_a_file_of_another_environment_is_ignored_with_a_warning(environment, part, value, named) -> None:
    write_orders(environment, {"aten::tanh": ["toy_slow", "toy_fast"]}, **{part: value})
    lines = explained(environment)
    assert lines[0] == "aten::tanh toy_fast default"
    warning = "\n".join(lines[4:])
    assert "are not used: it was measured in another environment" in warning and named in warning
    row = doctor(environment)["measured orders"]
    assert (
        row["status"] == "warn" and named in row["detail"] and row["command"] == "python -m torch_musa tune"
    )


def test_a_pack_that_is_disabled_leaves_the_orders_of_the_others(environment) -> None:
    write_orders(
        environment, {"aten::tanh": ["absent", "toy_slow"]}, packs={"pack-toys": "1.2", "gone": "1.0"}
    )
    # The measured providers in their order, then the others.
    assert explained(environment)[0] == "aten::tanh toy_slow file"


def test_a_damaged_or_missing_file_raises_if_it_is_named_and_warns_otherwise(environment, tmp_path) -> None:
    done = run_forked(EXPLAIN, **environment)
    assert done.returncode != 0
    assert "TORCH_MUSA_OPS_FILE=" in done.stderr and "No such file" in done.stderr and "Fix: " in done.stderr
    row = doctor(environment)["measured orders"]
    assert row["status"] == "fail" and row["command"] == "unset TORCH_MUSA_OPS_FILE"
    code = """
import torch
from musa_runtime import measured_orders
path = measured_orders.default_path(torch.musa.get_device_name())
print(path)
"""
    home = {**environment, "TORCH_MUSA_OPS_FILE": None, "XDG_CONFIG_HOME": str(tmp_path)}
    path = Path(run_forked(code, **home).stdout.strip())
    assert path.is_relative_to(tmp_path / "torch_musa" / "orders")
    path.parent.mkdir(parents=True)
    for text in (
        "{",
        "[]",
        '{"format": 1}',
        '{"format": 1, "identity": {}, "operators": {"aten::tanh": {}}}',
    ):
        path.write_text(text)
        lines = explained(home)
        assert lines[0] == "aten::tanh toy_fast default" and f"{path} are not used" in lines[4]


def test_the_default_file_is_read_and_written(environment, tmp_path) -> None:
    home = {**environment, "TORCH_MUSA_OPS_FILE": None, "XDG_CONFIG_HOME": str(tmp_path)}
    done = tune(home, "tune", "--operators", "aten::sigmoid")
    assert done.returncode == 0 and "export TORCH_MUSA_OPS_FILE" not in done.stdout
    assert explained(home)[2] == "aten::sigmoid toy_fast file"


def test_mistakes_are_named_before_anything_is_measured(environment, tmp_path) -> None:
    folder = tmp_path / "file"
    folder.write_text("")
    cases = [
        (("--output", str(folder / "x.json")), {}, "the orders cannot be written to"),
        (("--output", str(tmp_path)), {}, "Is a directory"),
        (("--operators", "aten::sigmoi"), {}, "Did you mean aten::sigmoid"),
        (("--operators", "aten::mm"), {}, "only one provider serves 'aten::mm'"),
        ((), {"TORCH_MUSA_OPS": "toy_fast"}, "Fix: unset TORCH_MUSA_OPS"),
        ((), {"MUSA_VISIBLE_DEVICES": ""}, "no musa device is visible"),
    ]
    for arguments, changes, expected in cases:
        done = tune(environment, "tune", *arguments, **changes)
        assert done.returncode == 1 and expected in done.stderr and "Fix: " in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


def test_a_dry_run_lists_operators_and_writes_nothing(environment) -> None:
    done = tune(environment, *BOTH, "--dry-run", "--full")
    assert "aten::tanh: toy_fast, toy_slow, toy_wrong; small float32" in done.stdout
    assert "large float16" in done.stdout and environment["TORCH_MUSA_OPS_FILE"] in done.stdout
    assert not os.path.exists(environment["TORCH_MUSA_OPS_FILE"])


def test_a_time_limit_keeps_the_results_so_far(environment) -> None:
    done = tune(environment, *BOTH, "--seconds", "0.000001")
    assert done.returncode == 0 and "The time limit ended the run" in done.stdout
    done = tune(environment)
    assert "2 of 2 operators measured" in done.stdout


def test_reset_restores_the_environment_and_the_file(environment) -> None:
    write_orders(environment, {"aten::tanh": ["toy_slow", "toy_fast"]})
    code = """
import torch
ops = torch.musa.ops
def show(): print(ops.explain("aten::tanh")["origin"], ops.explain("aten::sigmoid")["origin"])
show()
with ops.prefer("aten::tanh", "toy_fast"):
    show()
show()
ops.set_policy("toy_slow")
show()
ops.reset()
show()
"""
    done = run_forked(code, **environment, TORCH_MUSA_OPS="aten::sigmoid=toy_slow")
    assert done.stdout.splitlines() == [
        "file TORCH_MUSA_OPS",
        "prefer TORCH_MUSA_OPS",
        "file TORCH_MUSA_OPS",
        "set_policy set_policy",
        "file TORCH_MUSA_OPS",
    ], done.stderr


# ---- the choice


def rounds(**medians: float) -> dict[str, list[float]]:
    return {name: [median * noise for noise in (0.98, 1.0, 1.0, 1.02)] for name, median in medians.items()}


@pytest.mark.parametrize(
    ("times", "present", "wrong", "expected"),
    [
        # The first one of the present order stays unless it is slower by 5 %.
        ({"small": rounds(a=104, b=100)}, "ab", "", "ab"),
        ({"small": rounds(a=110, b=100)}, "ab", "", "ba"),
        # Never one that is slower in a case, if another is not.
        ({"small": rounds(a=10, b=9, c=9), "medium": rounds(a=10, b=2, c=8)}, "abc", "", "bca"),
        ({"small": rounds(a=10, b=10), "medium": rounds(a=10, b=12)}, "ba", "", "ab"),
        # Each is slower in a case: the geometric mean, by 5 %.
        ({"small": rounds(a=10, b=20), "medium": rounds(a=30, b=10)}, "ab", "", "ba"),
        ({"small": rounds(a=10, b=20), "medium": rounds(a=20.5, b=10)}, "ab", "", "ab"),
        # A wrong one is last, however fast.
        ({"small": rounds(a=10, b=5)}, "ba", "b", "ab"),
        # The calls that the first one declines decide about the next.
        ({"small": rounds(a=1, b=5, c=9), "medium": rounds(b=9, c=5)}, "abc", "", "acb"),
        # One that declined everything keeps its place.
        ({"small": rounds(b=9, c=5)}, "abc", "", "acb"),
        ({}, "abc", "", "abc"),
    ],
)
def test_the_order_from_times(times, present, wrong, expected) -> None:
    assert "".join(choice.order(times, list(present), list(wrong))) == expected


def test_a_single_long_round_is_no_reason_to_change() -> None:
    times = {"small": {"a": [100, 100, 900, 100, 100], "b": [99, 101, 100, 99, 101]}}
    assert choice.order(times, ["a", "b"]) == ["a", "b"]


def test_the_file_of_a_device_has_a_name_that_every_file_system_takes() -> None:
    assert os.path.basename(measured_orders.default_path("MTT S5000 (emulated)")) == "MTT_S5000_emulated.json"
