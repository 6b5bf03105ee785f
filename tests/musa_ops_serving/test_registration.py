# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Schemas, fake rules, derivatives, torch.compile and graphs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from tests.harness.subprocesses import run_code
from tests.musa_ops_serving.cases import CASES, Case, attention, integers, numbers

ROOT = Path(__file__).resolve().parents[2]
# test_autograd_registration is for devices of torch's own list.
UTILITIES = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
FIRST = {case.op: case for case in reversed(CASES) if 0 not in case.arguments[0].shape}
WITH_DERIVATIVE = ("rms_norm", "silu_and_mul", "gelu_and_mul")


def test_every_operator_has_a_case_and_is_in_the_design(ops):
    names = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names()
             if name.startswith("musa_serving::")}  # fmt: skip
    page = (ROOT / "docs" / "design" / "serving.md").read_text()
    assert names == set(FIRST)
    assert names <= set(re.findall(r"\b[a-z_]{5,}\b", page))


@pytest.mark.parametrize("op", FIRST)
def test_opcheck(ops, op):
    """Schema, fake rule, and tracing with symbolic sizes; of both directions if there is a derivative."""
    arguments, options = FIRST[op].on("musa", torch.float32)
    if op in WITH_DERIVATIVE:
        arguments = tuple(a.requires_grad_() if isinstance(a, torch.Tensor) else a for a in arguments)
    torch.library.opcheck(getattr(ops, op).default, arguments, options, test_utils=UTILITIES)


def test_opcheck_of_the_form_with_an_output(ops):
    arguments, options = FIRST["paged_attention"].on("musa", torch.float32)
    out = torch.empty_like(arguments[0])
    utilities = (
        "test_schema",
        "test_faketensor",
    )  # functionalization has no rule for an out= form of a library
    torch.library.opcheck(ops.paged_attention.out, arguments, {**options, "out": out}, test_utils=utilities)


@pytest.mark.parametrize("layout", [0, 8, 3])
def test_the_output_may_have_any_strides(ops, layout):
    case = FIRST["paged_attention"]
    arguments, options = case.on("musa", torch.float16)
    tokens, heads, size = arguments[0].shape
    out = torch.full((tokens, heads, size + layout), 7.0, dtype=torch.float16, device="musa")[..., :size]
    assert ops.paged_attention.out(*arguments, **options, out=out) is out
    assert torch.equal(out, ops.paged_attention(*arguments, **options))
    whole = out._base if layout else out
    assert (whole[..., size:] == 7).all()


@pytest.mark.parametrize("op", [op for op in FIRST if op not in WITH_DERIVATIVE and op != "moe_group"])
def test_an_argument_that_requires_a_gradient_is_refused(ops, op):
    arguments, options = FIRST[op].on("musa", torch.float32)
    place = next(i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor) and a.is_floating_point())
    arguments[place].requires_grad_()
    with pytest.raises(RuntimeError, match=r"has no derivative[\s\S]*Fix: .*no_grad"):
        getattr(ops, op)(*arguments, **options)
    with torch.no_grad():
        getattr(ops, op)(*arguments, **options)
    with torch.inference_mode():
        getattr(ops, op)(*arguments, **options)


def test_operators_that_write_count_as_changes_of_their_arguments(ops):
    logits = numbers(2, 5).float().to("musa")
    before = logits._version
    ones, counts = torch.ones(2, device="musa"), integers(0, 3, 2, 5).to("musa")
    ops.apply_penalties(logits, counts > 1, counts, ones, ones, ones)
    assert logits._version == before + 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", [case for case in CASES if case.op in WITH_DERIVATIVE], ids=str)
def test_gradients_equal_those_of_the_reference(ops, case: Case, dtype):
    arguments, _ = case.on("musa", dtype)
    found = [a.requires_grad_() for a in arguments if isinstance(a, torch.Tensor)]
    there, _ = case.with_tensors(lambda value: value.to(dtype).double().requires_grad_())
    expected = [a for a in there if isinstance(a, torch.Tensor)]
    result, reference = case.run_with(ops, arguments), case.run_reference(there)
    grad = numbers(*reference.shape, seed=8).to(dtype)
    (result * grad.to("musa")).sum().backward()
    (reference * grad.double()).sum().backward()
    tolerance = {torch.float32: 1e-4, torch.bfloat16: 3e-2}[dtype]
    for one, other in zip(found, expected):
        largest = max(1.0, other.grad.abs().max().item()) if other.numel() else 1.0  # sums of rounded terms
        torch.testing.assert_close(
            one.grad.cpu().double() / largest, other.grad / largest, rtol=tolerance, atol=tolerance
        )


def test_only_the_gradient_that_is_needed_is_computed(ops):
    x = numbers(4, 64).float().to("musa").requires_grad_()
    ops.rms_norm(x, torch.ones(64, device="musa"), 1e-6).sum().backward()
    assert x.grad is not None


def test_a_compiled_layer_has_the_results_of_eager_mode(ops):
    weight = numbers(64).float().to("musa")

    def layer(x, residual):
        ops.add_rms_norm_(x, residual, weight, 1e-5)
        return ops.silu_and_mul(x) + ops.rms_norm(residual, weight, 1e-5)[..., :32]

    x, residual = numbers(3, 64).float().to("musa"), numbers(3, 64, seed=1).float().to("musa")
    expected = layer(x.clone(), residual.clone())
    changed = x.clone(), residual.clone()
    found = torch.compile(layer, backend="aot_eager", fullgraph=True)(*changed)
    torch.testing.assert_close(found, expected)
    eager = x.clone(), residual.clone()
    layer(*eager)
    torch.testing.assert_close(changed, eager)


def test_a_graph_records_a_step_of_decoding_and_replays_it_for_other_sequences(ops):
    """The lengths, the blocks and the slots are read when the graph runs. Two more sequences are padding."""
    arguments, options = attention([700, 9, 0, 0], [1, 1, 1, 1])
    names = ("query", "keys", "values", "table", "starts", "lengths")
    # The lengths change, so no slot of the cache is left unwritten.
    held = dict(zip(names, (a.float().nan_to_num() if a.is_floating_point() else a for a in arguments[:6])))
    held = {name: tensor.to("musa") for name, tensor in held.items()}
    key, slots = numbers(4, 2, 64, seed=6).float().to("musa"), torch.tensor([3, -1, -1, -1], device="musa")

    def step():
        ops.reshape_and_cache(key, key, held["keys"], held["values"], slots)
        return ops.paged_attention(*held.values(), 1, 4096, **options)

    step()
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        out = step()
    for seed, lengths in enumerate(([3, 0, 1, 0], [640, 16, 2, 5])):
        table = integers(0, len(arguments[1]), *held["table"].shape, seed=seed)
        held["table"].copy_(table)
        held["lengths"].copy_(torch.tensor(lengths, dtype=torch.int32))
        held["query"].copy_(numbers(4, 4, 64, seed=seed + 20))
        key.copy_(numbers(4, 2, 64, seed=seed + 30))
        slots.copy_(torch.tensor([5, 17, -1, 40]))
        graph.replay()
        assert torch.equal(out, step())
        assert (out[torch.tensor(lengths) == 0] == 0).all()
        changed = [key[[0, 1, 3]], held["keys"][[0, 1, 2], [5, 1, 8]]]
        assert torch.equal(*changed)


def test_rows_sorted_by_expert_are_the_groups_of_torchs_grouped_product(ops):
    tokens, size, experts, k = 20, 32, 4, 2
    hidden = numbers(tokens, size).bfloat16().to("musa")
    weights = numbers(experts, size, 48, seed=1).bfloat16().to("musa")
    shares, chosen = ops.moe_route(numbers(tokens, experts, seed=2).float().to("musa"), k)
    order, offsets = ops.moe_group(chosen, experts)
    products = torch._grouped_mm(hidden[order // k], weights, offs=offsets)
    found = torch.zeros(tokens * k, 48, device="musa").index_copy_(0, order, products.float())
    found = (found.view(tokens, k, 48) * shares[..., None]).sum(1)
    every = torch.einsum("ti,eio->teo", hidden.cpu().double(), weights.cpu().double())
    expected = (
        every.gather(1, chosen.cpu().long()[..., None].expand(-1, -1, 48)) * shares.cpu()[..., None]
    ).sum(1)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=2e-2, atol=5e-2)


@pytest.mark.once
def test_it_works_beside_the_runtime_alone():
    """Without the packs of other operators, and with memory that the host cannot address."""
    code = """
    import torch
    key = torch.ones(3, 1, 64, device="musa")
    caches = torch.zeros(2, 2, 2, 1, 64, device="musa")
    torch.ops.musa_serving.reshape_and_cache(key, key * 3, *caches, torch.tensor([2, 3, 0], device="musa"))
    numbers = [torch.tensor(row, dtype=torch.int32, device="musa") for row in ([[1, 0]], [0, 1], [3])]
    print(torch.ops.musa_serving.paged_attention(key[:1], *caches, *numbers, 1, 3, scale=1.0).mean().item())
    """
    others = "amp,as_cuda,compat,compile,distributed,math,mudnn,vision"
    assert float(
        run_code(code, TORCH_MUSA_DISABLE_PACKS=others, MUSA_EMULATOR_MEMORY="strict")
    ) == pytest.approx(3)
