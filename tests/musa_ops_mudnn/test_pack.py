# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack as a whole: its operators, its errors when muDNN refuses a call, and torch without the pack."""

from __future__ import annotations

import json

import pytest
import torch

from tests.harness.emulator import MEMORY_ALLOCATION
from tests.harness.subprocesses import run_code, run_module

LEAST_SERVED = 420
NOT_SUPPORTED = 801


@pytest.fixture(scope="module")
def rows():
    done = run_module("torch_musa", "ops", "--json", "--all")
    assert done.returncode == 0, done.stderr
    return {row["op"]: row for row in json.loads(done.stdout)}


@pytest.fixture
def families(musa):
    from musa_ops_mudnn import _library

    return _library.families()


@pytest.mark.once
def test_muDNN_is_the_first_provider_of_more_than_upstreams_operators(rows):
    served = [op for op, row in rows.items() if row["provider"] == "mudnn"]
    assert len(served) >= LEAST_SERVED
    assert all(rows[op]["candidates"][0] == "mudnn" for op in served)


@pytest.mark.once
@pytest.mark.parametrize(
    "op",
    ["aten::add.Tensor", "aten::add.out", "aten::add_.Tensor", "aten::mm", "aten::convolution_overrideable"]
    + ["aten::native_layer_norm", "aten::_softmax", "aten::cat", "aten::sum.dim_IntList", "aten::topk"]
    + ["aten::nll_loss_forward", "aten::max_pool2d_with_indices", "torch_musa::rope"],
)
def test_it_serves_the_common_operators_of_networks(rows, op):
    assert rows[op]["provider"] == "mudnn"


def test_each_operator_exists_in_this_torch_and_belongs_to_one_family(musa, families):
    extension = __import__("musa_runtime").load().extension
    assert [op for op in families if not extension.ops_has(op)] == []
    assert len(families) >= LEAST_SERVED and all(families.values())


def test_no_kernel_replaces_a_composition_that_autograd_differentiates(families):
    # Such an operator has no derivative formula, so a kernel for the device would break the autograd graph.
    def has(op, key):
        return torch._C._dispatch_has_kernel_for_dispatch_key(op, key)

    implicit = [
        op
        for op in families
        if has(op, "CompositeImplicitAutograd")
        and not has(op, "Autograd")
        and not has(op, "AutogradPrivateUse1")
    ]
    assert implicit == []


def test_only_operators_that_no_other_provider_has_are_registered_without_a_predicate(musa, families):
    # Without a predicate, an operand that muDNN does not support cannot go to the next provider. Products
    # with out_dtype= have none: torch has no CPU kernel for them, so that the kernel raises the errors.
    unconditional = {
        op
        for op in families
        for row in musa.ops.explain(op)["candidates"]
        if row["provider"] == "mudnn" and not row["conditional"]
    }
    products = ("mm", "bmm", "addmm", "baddbmm")
    assert unconditional == {f"aten::{name}.dtype{out}" for name in products for out in ("", "_out")}
    assert not any(torch._C._dispatch_has_kernel_for_dispatch_key(op, "CPU") for op in unconditional)


@pytest.mark.once
def test_the_pack_and_its_version_are_listed():
    (row,) = [
        row
        for row in json.loads(run_module("torch_musa", "packs", "--json").stdout)
        if row["name"] == "mudnn"
    ]
    assert (row["status"], row["error"], row["providers"]) == ("loaded", None, ["mudnn"])
    assert row["ops"] >= LEAST_SERVED and "muDNN" in row["summary"]
    environment = json.loads(run_module("torch_musa", "env", "--json").stdout)
    assert environment["mudnn: muDNN"].count(".") == 2


@pytest.mark.parametrize(
    ("call", "f", "shapes", "op"),
    [
        ("Unary::Run", lambda x: x.cos(), ["[2, 3]"], "aten::cos"),
        ("MatMul::Run", lambda x: x @ x.t(), ["[2, 3]", "[3, 2]", "[2, 2]"], "aten::mm"),
        ("Softmax::Run", lambda x: x.softmax(1), ["[2, 3]"], "aten::_softmax"),
        ("Reduce::Run", lambda x: x.sum(1), ["[2, 3]", "[2]"], "aten::sum"),
    ],
)
def test_an_error_names_operator_call_shapes_status_and_fix(emulator, call, f, shapes, op):
    x = torch.ones(2, 3, device="musa")
    emulator.fail_next(f"musa::dnn::{call}", NOT_SUPPORTED)
    with pytest.raises(RuntimeError) as caught:
        f(x)
    text = str(caught.value)
    assert f"muDNN answered NOT_SUPPORTED to {call}(" in text
    assert all(f"Float{shape}" in text for shape in shapes), text
    assert f"in {op}" in text and "served by mudnn" in text
    assert "TORCH_MUSA_OPS=" in text and "MUDNN_LOG_LEVEL" in text
    torch.testing.assert_close(f(x).cpu(), f(torch.ones(2, 3)))


def test_exhausted_memory_is_an_out_of_memory_error(emulator):
    x = torch.ones(2, 3, device="musa")
    emulator.fail_next("musa::dnn::Unary::Run", MEMORY_ALLOCATION)
    with pytest.raises(torch.OutOfMemoryError, match=r"ALLOC_FAILED to Unary::Run(.|\n)*memory_summary"):
        x.cos()


@pytest.mark.once
@pytest.mark.parametrize(
    "variables",
    [{"TORCH_MUSA_OPS": "aten::*=host-copy"}, {"TORCH_MUSA_DISABLE_PACKS": "mudnn"}],
    ids=["routed around", "disabled"],
)
def test_one_can_do_without_it(musa, variables):
    code = """
    import torch
    x = torch.linspace(-1, 1, 12).view(3, 4)
    def f(x):
        return torch.nn.functional.gelu(x @ x.t()).softmax(1)
    torch.testing.assert_close(f(x.to("musa")).cpu(), f(x))
    told = [torch.musa.ops.explain(op)["candidates"] for op in ("aten::mm", "aten::gelu", "aten::_softmax")]
    print(sum(row["calls"] for rows in told for row in rows if row["provider"] == "mudnn"))
    """
    assert run_code(code, TORCH_MUSA_FALLBACK="allow", **variables) == "0\n"


@pytest.mark.once
def test_a_missing_library_is_named_with_a_fix_and_the_device_works_without_it(musa, tmp_path):
    code = f"""
    import os, torch
    from musa_ops_mudnn import _library
    from musa_runtime import sdk
    found = sdk.resolve()
    for name in os.listdir(found.home):
        if name != "lib":
            os.symlink(os.path.join(found.home, name), os.path.join({str(tmp_path)!r}, name))
    os.mkdir({str(tmp_path / "lib")!r})
    for name in os.listdir(os.path.join(found.home, "lib")):
        if "mudnn" not in name:
            os.symlink(os.path.join(found.home, "lib", name), os.path.join({str(tmp_path)!r}, "lib", name))
    """
    run_code(code)
    code = """
    import torch
    print(float(torch.ones(3, device="musa").sum()))
    import torch_musa.plugins
    (record,) = [record for record in torch_musa.plugins.records() if record.name == "mudnn"]
    told = str(record.error)
    print(record.status, "has no lib/libmudnn.so" in told, "packages/musa-emulator-mudnn" in told)
    print(torch.backends.mudnn.is_available(), torch.backends.mudnn.version())
    """
    assert run_code(code, MUSA_HOME=str(tmp_path)) == "3.0\nfailed True True\nFalse None\n"
