# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The registry: each operator has a provider, calls are counted by provider, and the policy can change."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.harness.device import host_can_address_device_memory
from tests.harness.naming import expression
from tests.harness.subprocesses import run_code, run_forked


@pytest.fixture
def ops(musa):
    yield musa.ops
    musa.ops.reset()


def _own_provider():
    return "host" if host_can_address_device_memory() else "host-copy"


def test_torchs_own_kernels_serve_operators_that_no_pack_serves(ops):
    own = _own_provider()
    for op in ("aten::mm", "aten::add.out", "aten::_softmax.out", "aten::sort.stable", "aten::linalg_eig"):
        # The candidate comes after those of the packs, if there are any.
        assert own in [candidate["provider"] for candidate in ops.explain(op)["candidates"]], op
    assert ops.explain("aten::linalg_eig")["provider"] == own
    served = [row for row in ops.table() if row["provider"] not in ("composite", "none", "runtime")]
    alone = [row for row in served if set(row["candidates"]) <= {"host", "host-copy"}]
    assert len(alone) > 150
    assert {row["provider"] for row in alone} == {own}


def test_a_call_is_counted_for_the_candidate_that_ran(ops):
    x = torch.ones(3, 3, device="musa")
    before = {row["provider"]: row["calls"] for row in ops.explain("aten::mm")["candidates"]}
    for _ in range(5):
        torch.mm(x, x)
    after = {row["provider"]: row["calls"] for row in ops.explain("aten::mm")["candidates"]}
    ran = ops.explain("aten::mm")["provider"]
    assert after[ran] - before[ran] == 5
    assert sum(after.values()) - sum(before.values()) == 5


def test_a_preference_takes_effect_at_once_and_gives_the_same_result(ops):
    x = torch.randn(4, 4, device="musa")
    expected = torch.mm(x, x).cpu()
    usual = ops.explain("aten::mm")["provider"]
    with ops.prefer("aten::mm", "host-copy"):
        assert ops.explain("aten::mm")["provider"] == "host-copy"
        before = {row["provider"]: row["calls"] for row in ops.explain("aten::mm")["candidates"]}["host-copy"]
        torch.testing.assert_close(torch.mm(x, x).cpu(), expected)
        after = {row["provider"]: row["calls"] for row in ops.explain("aten::mm")["candidates"]}["host-copy"]
        assert after == before + 1
    assert ops.explain("aten::mm")["provider"] == usual


@pytest.mark.host_addressable("the provider in place computes in device memory, on the host")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + x.t(),
        lambda x: x.sum(0),
        lambda x: x.clone().add_(1),
        lambda x: torch.cat([x, x]),
        lambda x: x.sort(dim=1).indices,
        lambda x: torch.add(x, 1, out=torch.empty(0, device=x.device)),
        lambda x: x[:, ::2].clone().mul_(2),
        lambda x: torch.nonzero(x > 0),
        lambda x: torch.linalg.inv(x + 5 * torch.eye(4, device=x.device)),
        lambda x: torch.nn.functional.conv2d(x.view(1, 1, 4, 4), torch.ones(1, 1, 2, 2, device=x.device)),
        lambda x: x.to_sparse().to_dense(),
        lambda x: torch.view_as_complex(x.view(4, 2, 2)).imag.clone(),
        lambda x: x.index_put((torch.tensor([1], device=x.device),), torch.ones(4, device=x.device)),
        lambda x: x.unfold(0, 2, 1).clone(),
        lambda x: x.cumsum(0),
    ],
    ids=expression,
)
def test_the_provider_of_copies_computes_what_the_one_in_place_computes(ops, f):
    x = torch.randn(4, 4).to("musa")
    expected = f(x).cpu()
    with ops.prefer("*", "host-copy"):
        actual = f(x)
        assert actual.device.type == "musa"
        torch.testing.assert_close(actual.cpu(), expected)


def test_views_and_in_place_writes_survive_the_provider_of_copies(ops):
    with ops.prefer("*", "host-copy"):
        x = torch.zeros(4, 4, device="musa")
        view = x[1:3, ::2]
        view.add_(5)
        view.mul_(2)
        assert x.cpu()[1:3, ::2].eq(10).all()
        assert x.cpu().sum() == 40
        out = torch.empty(2, 2, device="musa").t()
        torch.add(view, 1, out=out)
        assert out.cpu().eq(11).all()


def test_an_operator_can_be_pinned_by_the_environment(musa):
    out = run_code(
        """
        import json, torch
        x = torch.ones(2, 2, device="musa")
        torch.mm(x, x), torch.relu(x)
        print(json.dumps([torch.musa.ops.explain(op)["provider"] for op in ("aten::mm", "aten::relu")]))
        """,
        TORCH_MUSA_OPS="aten::mm=host-copy",
        TORCH_MUSA_FALLBACK="allow",
    )
    mm, relu = json.loads(out.splitlines()[-1])
    assert mm == "host-copy"
    assert relu != "host-copy" or not host_can_address_device_memory()


def test_a_pattern_in_the_environment_pins_what_it_matches_unless_named_in_full(musa):
    out = run_code(
        """
        import torch
        torch.ones(1, device="musa")
        for op in ("aten::native_layer_norm", "aten::native_group_norm", "aten::mm"):
            print(torch.musa.ops.explain(op)["reason"].startswith("pinned: host-copy"))
        """,
        TORCH_MUSA_OPS="aten::*_norm*=host-copy;aten::native_group_norm=runtime,host-copy",
        TORCH_MUSA_FALLBACK="allow",
    )
    assert out.split() == ["True", "False", "False"]


def test_an_order_in_the_environment_holds_for_every_operator(musa):
    out = run_code(
        """
        import torch
        x = torch.ones(2, 2, device="musa")
        print(torch.musa.ops.explain("aten::mm")["provider"], float((x @ x).sum()))
        """,
        TORCH_MUSA_OPS="host-copy,host",
        TORCH_MUSA_FALLBACK="allow",
    )
    assert out.split() == ["host-copy", "8.0"]


def test_a_pin_to_an_unknown_provider_names_it_and_leaves_torch_usable(musa):
    done = run_forked(
        "import torch; print(float(torch.ones(3).sum())); torch.ones(1, device='musa')",
        TORCH_MUSA_OPS="aten::mm=absent",
    )
    assert done.returncode != 0
    assert "3.0" in done.stdout
    assert "absent" in done.stderr
    assert "host" in done.stderr or "host-copy" in done.stderr, "the error must name the available providers"


_FALLBACK = """
import warnings, torch
x = torch.ones(4, 4).to("musa")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        try:
            torch.cumsum(x, 0)
        except Exception as error:
            print("raised", type(error).__name__, error)
about = [str(w.message) for w in caught if "cumsum" in str(w.message)]
print("warned", len(about), about[:1])
report = {row["op"]: row for row in torch.musa.ops.fallback_report()}
print("counted", sum(row["count"] for op, row in report.items() if "cumsum" in op))
print("bytes", sum(row["bytes"] for op, row in report.items() if "cumsum" in op))
print("next", float((x.cpu() + 1).sum()))
"""


@pytest.mark.parametrize("mode", ["allow", "warn", "error"])
def test_running_on_copies_is_allowed_warned_about_once_or_refused(musa, mode):
    # Without packs, which would handle operators if the host cannot address memory.
    out = run_code(
        _FALLBACK,
        MUSA_EMULATOR_MEMORY="strict",
        TORCH_MUSA_FALLBACK=mode,
        TORCH_MUSA_DISABLE_PACKS="all",
    )
    lines = dict(line.split(" ", 1) for line in out.splitlines() if " " in line)
    if mode == "error":
        assert "cumsum" in lines["raised"]
        assert "TORCH_MUSA_FALLBACK" in lines["raised"]
    else:
        assert "raised" not in lines
        assert int(lines["counted"]) == 3
        # Each of the three calls reads and writes 16 floats.
        assert int(lines["bytes"]) >= 3 * 64
        assert int(lines["warned"].split()[0]) == (1 if mode == "warn" else 0)
    assert float(lines["next"]) == 32


@pytest.mark.host_addressable("only devices whose memory the host can address promise this")
def test_nothing_is_copied_if_the_host_can_address_device_memory(musa):
    out = run_code(_FALLBACK, TORCH_MUSA_FALLBACK="error")
    assert "raised" not in out
    assert "counted 0" in out


def test_the_policy_may_change_while_other_threads_call_operators(ops):
    x = torch.randn(4, 4, device="musa")
    # The last operator has neither a pack's candidate nor one of the runtime's compositions.
    calls = {
        "aten::mm": lambda: torch.mm(x, x),
        "aten::add.Tensor": lambda: x + x,
        "aten::linalg_eig": lambda: torch.linalg.eig(x)[0],
    }
    expected = {op: call().cpu() for op, call in calls.items()}
    own = _own_provider()
    refused = {"host"} - {own}  # listed as a candidate, but not for discrete memory
    names = {op: [c["provider"] for c in ops.explain(op)["candidates"]] for op in calls}
    names = {op: [name for name in providers if name not in refused] for op, providers in names.items()}

    def counted():
        told = {op: ops.explain(op) for op in calls}
        for op, one in told.items():
            assert sum(candidate["calls"] for candidate in one["candidates"]) == one["calls"], op
        return {op: one["calls"] for op, one in told.items()}

    before, made, stop = counted(), threading.Barrier(3), threading.Event()

    def work():
        count = 0
        made.wait()
        while not stop.is_set() or count < 20:
            for op, call in calls.items():
                torch.testing.assert_close(call().cpu(), expected[op])
            count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(work) for _ in range(2)]
        made.wait()
        try:
            for round in range(60):
                for op, providers in names.items():
                    ops.prefer(op, providers[round % len(providers)])
                if round % 10 == 9:
                    ops.set_policy(f"{own},runtime" if round % 20 == 9 else "")
        finally:
            stop.set()
    total = sum(each.result() for each in running)
    assert total >= 40
    assert {op: count - before[op] for op, count in counted().items()} == dict.fromkeys(calls, total)


def test_the_error_for_an_operator_without_a_provider_names_a_fix(musa):
    with pytest.raises(NotImplementedError, match=r"(?i)install|cpu") as caught:
        torch.ops.aten._cudnn_rnn_flatten_weight(
            [torch.ones(4, 4, device="musa")], 1, 4, 2, 4, 0, 1, False, False
        )
    assert "_cudnn_rnn_flatten_weight" in str(caught.value)
    assert torch.ones(1, device="musa").item() == 1


def test_an_operator_of_another_library_runs_through_the_fallback(musa):
    with torch.library._scoped_library("musa_tests", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        out = torch.ops.musa_tests.twice(torch.arange(3.0, device="musa"))
    assert out.device.type == "musa"
    assert out.cpu().tolist() == [0, 2, 4]
