# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa.ops: the provider of each operator, and the choice of another one."""

import pytest
import torch

from musa_runtime import policy
from musa_runtime.errors import UnknownOpError, UnknownProviderError
from tests.harness.device import host_can_address_device_memory
from tests.harness.subprocesses import run_code


@pytest.fixture
def ops(musa):
    yield musa.ops
    musa.ops.reset()


def test_explain_names_the_provider_and_the_reason(ops):
    told = ops.explain("aten::mm")
    assert told["op"] == "aten::mm" and told["provider"] and told["reason"]
    # "composite": torch's own composition of other operators, if no candidate is better.
    assert told["provider"] in ["composite", *(candidate["provider"] for candidate in told["candidates"])]


@pytest.mark.parametrize("op", ["mm", "aten.mm", torch.ops.aten.mm.default, torch.ops.aten.mm])
def test_an_operator_may_be_named_in_each_form_of_torch(ops, op):
    assert ops.explain(op)["op"] == "aten::mm"


def test_calls_are_counted(ops):
    def calls():
        # On discrete memory, aten::mm is composed of aten::mm.out, which is called instead.
        told = [ops.explain(op) for op in ("aten::mm", "aten::mm.out")]
        return sum(candidate["calls"] for op in told for candidate in op["candidates"])

    x = torch.ones(2, 2, device="musa")
    before = calls()
    x @ x
    x @ x
    assert calls() == before + 2


def test_a_preference_holds_until_reset(ops):
    x = torch.randn(4, 4)
    usual = ops.explain("aten::mm")["provider"]
    ops.prefer("aten::mm", "host-copy")
    assert ops.explain("aten::mm")["provider"] == "host-copy"
    torch.testing.assert_close((x.to("musa") @ x.to("musa")).cpu(), x @ x)
    ops.reset()
    assert ops.explain("aten::mm")["provider"] == usual


def test_a_preference_as_a_context_ends_with_the_block(ops):
    usual = ops.explain("aten::mm")["provider"]
    ops.prefer("aten::relu", "host-copy")
    with ops.prefer("aten::mm", "host-copy"):
        assert ops.explain("aten::mm")["provider"] == "host-copy"
    assert ops.explain("aten::mm")["provider"] == usual
    assert ops.explain("aten::relu")["provider"] == "host-copy"


def test_a_policy_replaces_preferences_until_reset(ops):
    ops.prefer("aten::relu", "host-copy")
    ops.set_policy("runtime;aten::mm=host-copy")
    assert (
        "pinned" in ops.explain("aten::mm")["reason"] and "pinned" not in ops.explain("aten::relu")["reason"]
    )
    with pytest.raises(UnknownProviderError, match="in 'aten::mm=portd'"):
        ops.set_policy("runtime;aten::mm=portd")
    assert ops.explain("aten::mm")["provider"] == "host-copy"
    ops.reset()
    assert "pinned" not in ops.explain("aten::mm")["reason"]


def test_a_pattern_covers_many_operators(ops):
    ops.prefer("aten::add*", "host-copy")
    assert ops.explain("aten::add.Tensor")["provider"] == "host-copy"
    assert ops.explain("aten::mm")["provider"] != "host-copy"


def test_unknown_names_are_refused_and_change_nothing(ops):
    usual = ops.explain("aten::mm")
    with pytest.raises(UnknownProviderError, match=r"no provider 'mudnm'.*host"):
        ops.prefer("aten::mm", "mudnm")
    with pytest.raises(
        UnknownOpError, match=r"aten::native_layer_nom.*Did you mean.*aten::native_layer_norm"
    ):
        ops.prefer("aten::native_layer_nom", "host-copy")
    with pytest.raises(UnknownOpError, match="Did you mean"):
        ops.explain("aten::add_tensor")
    assert ops.explain("aten::mm")["provider"] == usual["provider"]


def test_the_table_is_filtered(ops):
    rows = ops.table("aten::add.Tensor")
    assert [row["op"] for row in rows] == ["aten::add.Tensor"]
    assert all(isinstance(name, str) for name in rows[0]["candidates"])
    assert all("norm" in row["op"] for row in ops.table("norm"))
    assert len(ops.table()) > 500


def test_providers(ops):
    assert {"host", "host-copy"} <= set(ops.providers())


def test_earlier_names_of_the_hosts_providers_are_accepted(ops):
    for alias, name in policy.ALIASES.items():
        if name == "host" and not host_can_address_device_memory():
            continue  # refused by either name
        with ops.prefer("aten::mm", alias):
            assert ops.explain("aten::mm")["provider"] == name
        ops.set_policy(f"runtime;aten::mm={alias}")
        assert ops.explain("aten::mm")["provider"] == name
        ops.reset()
    assert not set(policy.ALIASES) & set(ops.providers())


def test_the_environment_pins_an_operator():
    code = """
    import torch
    mm, relu = torch.musa.ops.explain("aten::mm"), torch.musa.ops.explain("aten::relu")
    print(mm["provider"], "pinned" in mm["reason"], "pinned" in relu["reason"])
    """
    assert run_code(code, TORCH_MUSA_OPS="aten::mm=host-copy") == "host-copy True False\n"


def test_an_unknown_provider_in_the_environment_is_named_at_first_use_and_can_be_corrected():
    code = """
    import os, torch
    from musa_runtime.errors import UnknownProviderError
    for _ in range(2):
        try:
            torch.ones(2, device="musa")
        except UnknownProviderError as error:
            print("in 'aten::mm=portd'" in str(error))
    print(torch.ones(2).sum().item())
    os.environ["TORCH_MUSA_OPS"] = "aten::mm=host-copy"
    print(torch.ones(2, device="musa").sum().item())
    """
    assert run_code(code, TORCH_MUSA_OPS="runtime;aten::mm=portd").splitlines() == [
        "True",
        "True",
        "2.0",
        "2.0",
    ]


def test_fallback_can_be_counted_and_forbidden(ops):
    x = torch.ones(4, 4, device="musa")
    with ops.prefer("aten::mm", "host-copy"):
        ops.set_fallback_mode("allow")
        x @ x
        row = next(row for row in ops.fallback_report() if row["op"] == "aten::mm")
        assert row["count"] >= 1 and row["bytes"] > 0
        try:
            ops.set_fallback_mode("error")
            with pytest.raises(RuntimeError, match="aten::mm"):
                x @ x
        finally:
            ops.set_fallback_mode("warn")
    assert (x @ x).sum() == 64
    with pytest.raises(ValueError, match="'allow', 'warn' or 'error'"):
        ops.set_fallback_mode("never")
