# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Attention: every backend choice, operand and mask of scaled_dot_product_attention, packed and nested
sequences, DTensor, and the modules that call it. The reference is the definition in float64."""

from __future__ import annotations

import inspect
import itertools
import os

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.varlen import AuxRequest, varlen_attn
from torch.nn.functional import scaled_dot_product_attention

from tests.harness import skips
from tests.harness.device import computes_float64
from tests.harness.subprocesses import run_python
from tests.musa_ops_mudnn import attention_sweep as sweep

FUSED_OP = "aten::_scaled_dot_product_fused_attention_overrideable"
PACKED_OP = "aten::_flash_attention_forward"
POLICY = os.environ.get("TORCH_MUSA_OPS", "")

needs_mudnn_first = pytest.mark.skipif(
    bool(POLICY) and not POLICY.startswith("mudnn"),
    reason="TORCH_MUSA_OPS ranks another provider before muDNN",
)


def _heads(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype).to("musa")


# ---- the sweep


@pytest.mark.parametrize("backend", sweep.BACKENDS)
def test_every_combination_gives_the_definitions_result_and_gradients(musa, full, backend):
    cases = [case for case in sweep.cases() if case.backend == backend]
    assert not sweep.failures(cases if full else sweep.sample(50, cases))


@pytest.mark.once
@pytest.mark.parametrize(
    "environment",
    [
        {"MUSA_EMULATOR_MEMORY": "strict", "TORCH_MUSA_FALLBACK": "error"},
        {"TORCH_MUSA_OPS": "ported,host"},
        {"TORCH_MUSA_OPS": "host"},
    ],
    ids=["device memory closed to the host", "ported and host", "host"],
)
def test_every_combination_works_in_other_settings(musa, environment):
    done = run_python("-m", "tests.musa_ops_mudnn.attention_sweep", "200", **environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sweep_notices_a_wrong_scale(musa, monkeypatch):
    case = sweep.cases()[0]
    assert sweep.check(case) is None
    definition = sweep.reference
    monkeypatch.setattr(sweep, "reference", lambda case, q, *rest: definition(case, q * 1.01, *rest))
    assert "relative errors" in sweep.check(case)


# ---- the choice of a backend


@needs_mudnn_first
@pytest.mark.parametrize("backends", sweep.BACKENDS)
@pytest.mark.parametrize("rank", [3, 4])
def test_every_backend_but_math_runs_the_fused_kernel(served_by_mudnn, backends, rank):
    x = _heads(2, 2, 6, 16) if rank == 4 else _heads(2, 6, 16)
    with sweep.selected(backends):
        fused = served_by_mudnn(FUSED_OP, lambda: scaled_dot_product_attention(x, x, x))[1]
    assert fused is not backends.startswith("MATH")


@needs_mudnn_first
@pytest.mark.parametrize(
    "options",
    [{"dropout_p": 0.2}, {"is_causal": True}, {"attn_mask": True}, {"scale": 0.3}],
    ids=["dropout", "causal with unequal lengths", "mask", "scale"],
)
def test_the_fused_kernel_takes(served_by_mudnn, options):
    query, key = _heads(2, 2, 4, 16), _heads(2, 2, 6, 16)
    if "attn_mask" in options:
        options = {"attn_mask": _heads(4, 6)}
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert served_by_mudnn(FUSED_OP, lambda: scaled_dot_product_attention(query, key, key, **options))[1]


def test_without_any_backend_torch_raises_its_error(musa):
    x = _heads(1, 1, 2, 8)
    with sdpa_kernel([]), pytest.raises(RuntimeError, match="No viable backend"):
        scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize("dtype", sweep.DTYPES, ids=str)
@pytest.mark.parametrize(
    "query, key",
    [
        ((2, 2, 0, 8), (2, 2, 3, 8)),
        ((2, 2, 3, 8), (2, 2, 0, 8)),
        ((0, 2, 3, 8), (0, 2, 3, 8)),
        ((3, 0), (4, 0)),
    ],
    ids=["no queries", "no keys", "no batch", "no features"],
)
def test_operands_without_elements(musa, query, key, dtype):
    operands = [torch.randn(shape).to(dtype) for shape in (query, key, key)]
    leaves = [tensor.to("musa").requires_grad_() for tensor in operands]
    expected = scaled_dot_product_attention(*operands)
    actual = scaled_dot_product_attention(*leaves)
    actual.sum().backward()
    torch.testing.assert_close(actual.detach().cpu(), expected)
    assert all(leaf.grad.shape == leaf.shape for leaf in leaves)


def test_the_gradient_of_a_mask(musa):
    host = [torch.randn(2, 2, 5, 8, dtype=torch.double).requires_grad_() for _ in range(3)]
    host.append(torch.randn(1, 5, 5, dtype=torch.double).requires_grad_())
    leaves = [tensor.detach().to("musa").requires_grad_() for tensor in host]
    for operands in (host, leaves):
        scaled_dot_product_attention(*operands).square().sum().backward()
    for expected, actual in zip(host, leaves, strict=True):
        torch.testing.assert_close(actual.grad.cpu(), expected.grad)


def test_heads_and_batches_broadcast(musa):
    query, key = torch.randn(2, 4, 5, 8), torch.randn(1, 1, 6, 8)
    expected = scaled_dot_product_attention(query, key, key)
    actual = scaled_dot_product_attention(query.to("musa"), key.to("musa"), key.to("musa"))
    torch.testing.assert_close(actual.cpu(), expected)


@needs_mudnn_first
@pytest.mark.parametrize("size", [16, 24])
@pytest.mark.parametrize("inside", [False, True], ids=["contiguous", "heads inside"])
def test_the_output_has_the_strides_of_torchs_fake_kernel(musa, size, inside):
    from torch._subclasses.fake_tensor import FakeTensorMode

    def operand(width):
        return _heads(2, 6, 3, width).transpose(1, 2) if inside else _heads(2, 3, 6, width)

    op = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    operands = [operand(16), operand(16), operand(size)]
    real = op(*operands)
    mode = FakeTensorMode()
    with mode:
        fake = op(*(mode.from_tensor(tensor) for tensor in operands))
    for i in (0, 1):
        assert (real[i].shape, real[i].stride()) == (fake[i].shape, fake[i].stride())


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp"])
def test_torch_func_transforms(musa, transform):
    x = torch.randn(3, 2, 5, 8)

    def loss(tensor):
        return scaled_dot_product_attention(tensor, tensor, tensor, is_causal=True).sum()

    functions = {
        "vmap": torch.func.vmap(loss),
        "grad": torch.func.grad(loss),
        "jvp": lambda tensor: torch.func.jvp(loss, (tensor,), (torch.ones_like(tensor),))[1],
    }
    with sdpa_kernel(SDPBackend.MATH):  # torch's fused CPU kernel has no forward-mode derivative
        expected = functions[transform](x)
    torch.testing.assert_close(functions[transform](x.to("musa")).cpu(), expected)


def test_deterministic_algorithms_give_the_same_gradients_twice(musa):
    x = _heads(2, 2, 33, 16).requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        first, second = (
            torch.autograd.grad(scaled_dot_product_attention(x, x, x).sum(), x)[0] for _ in range(2)
        )
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(first, second)


# ---- graphs


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_each_replay_of_a_graph_draws_its_own_dropout(musa, dtype):
    if dtype == torch.float64 and not computes_float64():
        skips.skip_permanently("float64")
    x = _heads(2, 2, 8, 16, dtype=dtype).requires_grad_()

    def step():
        out = scaled_dot_product_attention(x, x, x, dropout_p=0.4)
        return out, torch.autograd.grad(out.sum(), x)[0]

    stream = torch.musa.Stream()
    with torch.musa.stream(stream):
        step()
    torch.musa.synchronize()
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        out, gradient = step()
    replays = []
    for _ in range(2):
        graph.replay()
        torch.musa.synchronize()
        replays.append((out.detach().clone(), gradient.clone()))
    assert not torch.equal(replays[0][0], replays[1][0])
    assert not torch.equal(replays[0][1], replays[1][1])


def test_packed_attention_is_captured_without_waiting_for_the_device(musa):
    offsets = torch.tensor([0, 3, 8], dtype=torch.int32, device="musa")
    x = _heads(8, 2, 16)

    def step():
        return varlen_attn(x, x, x, offsets, offsets, 5, 5), varlen_attn(
            x, x, x, offsets, offsets, 5, 5, window_size=(2, 0)
        )

    expected = [tensor.clone() for tensor in step()]
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        results = step()
    graph.replay()
    for actual, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(actual, wanted)


# ---- packed sequences

PACKED_LENGTHS = {
    "equal lengths": ((3, 1, 5), (3, 1, 5)),
    "more keys": ((2, 1, 3), (6, 1, 4)),
    "an empty sequence": ((3, 0, 2), (3, 2, 0)),
}
WINDOWS = ((-1, -1), (-1, 0), (2, 0), (1, 1), (-1, 1))
HAS_GROUPED_HEADS = "enable_gqa" in inspect.signature(varlen_attn).parameters  # not in torch 2.11
PACKED_HEADS = ((2, 2), (4, 2)) if HAS_GROUPED_HEADS else ((2, 2),)


def _offsets(lengths) -> torch.Tensor:
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)


def _visible(queries: int, keys: int, window: tuple[int, int]) -> torch.Tensor:
    distance = torch.arange(keys) - torch.arange(queries).unsqueeze(1) - (keys - queries)
    return (distance >= (-window[0] if window[0] >= 0 else -keys - queries)) & (
        distance <= (window[1] if window[1] >= 0 else keys + queries)
    )


def _packed_reference(query, key, value, lengths, window, scale):
    """Computes attention within each sequence of float64 [T, heads, size]. Returns output and logsumexp."""
    outputs, sums = [], []
    group = query.size(1) // key.size(1)
    starts = [_offsets(side).tolist() for side in lengths]
    for i, (queries, keys) in enumerate(zip(*lengths, strict=True)):
        q = query[starts[0][i] : starts[0][i] + queries].transpose(0, 1)
        k, v = (
            tensor[starts[1][i] : starts[1][i] + keys].transpose(0, 1).repeat_interleave(group, 0)
            for tensor in (key, value)
        )
        scores = (q @ k.transpose(1, 2) * scale).masked_fill(~_visible(queries, keys, window), float("-inf"))
        logsumexp = scores.logsumexp(-1)
        weights = (scores - logsumexp.nan_to_num(neginf=0.0).unsqueeze(-1)).exp()
        outputs.append((weights @ v).transpose(0, 1))
        sums.append(logsumexp)
    return torch.cat(outputs), torch.cat(sums, 1)


def _packed_cases():
    return itertools.product(
        PACKED_LENGTHS, WINDOWS, PACKED_HEADS, ((16, 16), (192, 128), (256, 256)), sweep.DTYPES
    )


def _packed_error(case, memory_layout) -> dict[str, float]:
    torch.manual_seed(0)
    named, window, (heads, kv_heads), (size, value_size), dtype = case
    lengths = PACKED_LENGTHS[named]
    shapes = [
        (sum(lengths[0]), heads, size),
        (sum(lengths[1]), kv_heads, size),
        (sum(lengths[1]), kv_heads, value_size),
    ]
    host = [torch.randn(shape).to(dtype) for shape in shapes]
    if memory_layout == "gaps":
        host = [torch.cat([tensor, tensor], -1)[..., : tensor.size(-1)] for tensor in host]
    leaves = [tensor.to("musa").requires_grad_() for tensor in host]
    if memory_layout == "gaps":
        leaves = [
            torch.cat([leaf, leaf], -1)[..., : leaf.size(-1)].detach().requires_grad_() for leaf in leaves
        ]
    offsets = [_offsets(side).to("musa") for side in lengths]
    if lengths[0] == lengths[1]:
        offsets[1] = offsets[0]
    scale = 0.2
    out, sums = varlen_attn(
        *leaves,
        *offsets,
        max(lengths[0]),
        max(lengths[1]),
        window_size=window,
        scale=scale,
        **({"enable_gqa": heads != kv_heads} if HAS_GROUPED_HEADS else {}),
        return_aux=AuxRequest(lse=True),
    )
    wide = [tensor.double().requires_grad_() for tensor in host]
    expected, expected_sums = _packed_reference(*wide, lengths, window, scale)
    grad_out = torch.randn(expected.shape).to(dtype)
    gradients = torch.autograd.grad(out, leaves, grad_out.to("musa"))
    wanted = torch.autograd.grad(expected, wide, grad_out.double())
    errors = {"out": sweep.error_of(out, expected)}
    for name, a, b in zip(("query", "key", "value"), gradients, wanted, strict=True):
        errors["gradient of " + name] = sweep.error_of(a, b)
    # The logsumexp is float32 for every dtype of the operands.
    finite = expected_sums.isfinite()
    assert sums.shape == expected_sums.shape and torch.equal(sums.isfinite().cpu(), finite)
    errors["logarithms of the sums"] = sweep.error_of(sums.cpu()[finite], expected_sums.detach()[finite]) * (
        sweep.TOLERANCE[dtype] / max(sweep.TOLERANCE[dtype], sweep.TOLERANCE[torch.float32])
    )
    return {name: error for name, error in errors.items() if not error <= sweep.TOLERANCE[dtype]}


@pytest.mark.parametrize("memory_layout", ["contiguous", "gaps"])
def test_packed_sequences_give_each_sequences_own_attention(musa, full, memory_layout):
    """360 cases in each of two layouts; without --full, every fifth of one and every seventh of the other."""
    step = 1 if full else {"contiguous": 5, "gaps": 7}[memory_layout]
    wrong = {
        case: errors
        for case in list(_packed_cases())[::step]
        if (errors := _packed_error(case, memory_layout))
    }
    assert not wrong


@needs_mudnn_first
def test_packed_sequences_run_muDNNs_kernel(served_by_mudnn):
    x, offsets = _heads(8, 2, 16), _offsets((3, 5)).to("musa")
    for window, fused in (((-1, -1), True), ((-1, 0), True), ((2, 0), False)):
        run = served_by_mudnn(
            PACKED_OP, lambda w=window: varlen_attn(x, x, x, offsets, offsets, 5, 5, window_size=w)
        )
        assert run[1] is fused


def test_packed_sequences_into_a_given_output(musa):
    skips.needs_torch("2.13", "varlen_attn_out")
    from torch.nn.attention.varlen import varlen_attn_out

    x, offsets = _heads(8, 2, 16), _offsets((3, 5)).to("musa")
    out = torch.empty_like(x)
    assert varlen_attn_out(out, x, x, x, offsets, offsets, 5, 5) is out
    torch.testing.assert_close(out, varlen_attn(x, x, x, offsets, offsets, 5, 5))


def test_packed_queries_of_a_cache_with_pages(musa):
    """Two sequences with 5 and 2 valid keys, in pages of 4 rows that are out of order."""
    skips.needs_torch("2.13", "the argument block_table of varlen_attn")
    pages = _heads(4, 4, 2, 16)
    table = torch.tensor([[2, 0], [3, 1]], dtype=torch.int32, device="musa")
    used = torch.tensor([5, 2], dtype=torch.int32, device="musa")
    query, offsets = _heads(3, 2, 16), _offsets((2, 1)).to("musa")
    out = varlen_attn(
        query, pages, pages, offsets, None, 2, 8, window_size=(-1, 0), seqused_k=used, block_table=table
    )
    keys = torch.cat([pages[2], pages[0, :1], pages[3, :2]]).cpu().double()
    expected, _ = _packed_reference(query.cpu().double(), keys, keys, ((2, 1), (5, 2)), (-1, 0), 0.25)
    assert sweep.error_of(out, expected) < 1e-5


def test_positional_biases_of_packed_sequences(musa):
    """ALiBi subtracts slope * distance from each score."""
    x, offsets, slopes = _heads(4, 2, 16), _offsets((4,)).to("musa"), torch.tensor([0.5, 0.25])
    out = torch.ops.aten._flash_attention_forward(
        x, x, x, offsets, offsets, 4, 4, 0.0, False, False, alibi_slopes=slopes.to("musa")
    )[0]
    distance = (torch.arange(4) - torch.arange(4).unsqueeze(1)).abs()
    heads = x.cpu().transpose(0, 1)
    expected = scaled_dot_product_attention(heads, heads, heads, -slopes.view(2, 1, 1) * distance)
    torch.testing.assert_close(out.cpu(), expected.transpose(0, 1))


@pytest.mark.parametrize("size", [16, 256], ids=["fused", "composed"])
def test_dropout_of_packed_sequences_is_repeatable_and_keeps_its_mask(musa, size):
    offsets = _offsets((3, 5)).to("musa")
    query, key = _heads(8, 2, size), _heads(8, 2, size)
    # The values are unit vectors, so the output equals the weights; its sum's gradient sums them per key.
    value = torch.zeros(8, 2, size)
    for row, position in enumerate((0, 1, 2, 0, 1, 2, 3, 4)):
        value[row, :, position] = 1
    value = value.to("musa").requires_grad_()

    def attend():
        torch.manual_seed(3)
        return torch.ops.aten._flash_attention_forward(
            query, key, value, offsets, offsets, 5, 5, 0.5, False, False
        )[0]

    out = attend()
    assert torch.equal(out, attend())
    assert 0 < int((out[:3, :, :3] == 0).sum() + (out[3:, :, :5] == 0).sum()) < 2 * (9 + 25)
    (gradient,) = torch.autograd.grad(out.sum(), value)
    per_key = torch.cat([out[:3].sum(0)[:, :3].t(), out[3:].sum(0)[:, :5].t()])
    torch.testing.assert_close(gradient[..., 0], per_key.detach())


def test_a_dense_batch_of_flash_attention(musa):
    """Without offsets the operands are (B, L, heads, size), and causal masks are aligned at the last key."""
    query, key = _heads(2, 3, 2, 16), _heads(2, 5, 2, 16)
    out, sums, *_ = torch.ops.aten._flash_attention_forward(
        query, key, key, None, None, 3, 5, 0.0, True, False
    )
    expected, expected_sums = zip(
        *(
            _packed_reference(q.double(), k.double(), k.double(), ((3,), (5,)), (-1, 0), 0.25)
            for q, k in zip(query.cpu(), key.cpu(), strict=True)
        ),
        strict=True,
    )
    assert sweep.error_of(out, torch.stack(expected)) < 1e-5
    assert sweep.error_of(sums, torch.stack(expected_sums)) < 1e-5


# ---- CUDA's operators by name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("lengths", [(6, 6), (4, 7)], ids=str)
@pytest.mark.parametrize("name", ["flash", "efficient", "cudnn"])
def test_the_operators_of_cudas_backends(musa, name, lengths, dtype):
    operands = [torch.randn(2, 2, rows, 16, dtype=dtype) for rows in (lengths[0], lengths[1], lengths[1])]
    leaves = [tensor.to("musa").requires_grad_() for tensor in operands]
    wide = [tensor.double().requires_grad_() for tensor in operands]
    op = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention")
    between = {"flash": (), "efficient": (None, True), "cudnn": (None, True)}[name]
    out, logsumexp = op(*leaves, *between, 0.0, True)[:2]
    # Flash attention aligns the causal mask at the last key, the others at the first.
    diagonal = lengths[1] - lengths[0] if name == "flash" else 0
    hidden = torch.ones(lengths).tril(diagonal) == 0
    scores = (wide[0] @ wide[1].mT / 4).masked_fill(hidden, float("-inf"))
    expected = scores.softmax(-1) @ wide[2]
    grad_out = torch.randn(expected.shape, dtype=dtype)
    gradients = torch.autograd.grad(out, leaves, grad_out.to("musa"))
    wanted = torch.autograd.grad(expected, wide, grad_out.double())
    for actual, reference in zip((out, *gradients), (expected, *wanted), strict=True):
        assert sweep.error_of(actual, reference) < sweep.TOLERANCE[dtype]
    assert logsumexp.size(-1) == (32 if name == "efficient" else lengths[0])
    assert sweep.error_of(logsumexp[..., : lengths[0]], scores.logsumexp(-1).detach()) < 1e-5


@pytest.fixture
def mesh(musa):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=1, store=FakeStore())
    yield init_device_mesh("musa", (1,))
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    "options, dtype",
    [
        *itertools.product(({}, {"is_causal": True}), (torch.float32, torch.bfloat16, torch.float64)),
        ({"dropout_p": 0.1}, torch.float32),
        ({"dropout_p": 0.1}, torch.bfloat16),
    ],
    ids=str,
)
def test_attention_of_distributed_tensors(mesh, options, dtype):
    from torch.distributed.tensor import DTensor, Shard

    x = _heads(2, 4, 6, 16, dtype=dtype)

    def run(tensor):
        torch.manual_seed(0)
        out = scaled_dot_product_attention(tensor, tensor, tensor, **options)
        return out, torch.autograd.grad(out, tensor, torch.ones_like(out))[0]

    sharded = DTensor.from_local(x, mesh, [Shard(1)], run_check=False).requires_grad_()
    for actual, expected in zip(run(sharded), run(x.clone().requires_grad_()), strict=True):
        assert actual.placements == (Shard(1),)
        torch.testing.assert_close(actual.to_local(), expected)


# ---- modules


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", ["none", "keys", "scores", "both"])
@pytest.mark.parametrize("weights", ["none", "average", "per head"])
def test_multi_head_attentions_fast_path(musa, dtype, mask, weights):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(16, 4, batch_first=True, dtype=dtype).eval()
    x = torch.randn(2, 5, 16, dtype=dtype)
    options = {"need_weights": weights != "none", "average_attn_weights": weights == "average"}
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)

    def run(device):
        masks = {
            "key_padding_mask": padding.to(device) if mask in ("keys", "both") else None,
            "attn_mask": future.to(device) if mask in ("scores", "both") else None,
        }
        y = x.to(device)
        with torch.no_grad():
            return module.to(device)(y, y, y, **options, **masks)

    expected, actual = run("cpu"), run("musa")
    tolerance = {"rtol": 5e-2, "atol": 5e-2} if dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(actual[0].cpu(), expected[0], **tolerance)
    assert (actual[1] is None) == (expected[1] is None)
    if expected[1] is not None:
        torch.testing.assert_close(actual[1].cpu(), expected[1], **tolerance)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_layers_fast_path(musa, norm_first, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
    ).eval()
    x = torch.randn(2, 5, 16)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    with torch.no_grad():
        expected = layer(x, src_key_padding_mask=padding)
        actual = layer.to("musa")(x.to("musa"), src_key_padding_mask=padding.to("musa"))
    torch.testing.assert_close(actual.cpu()[~padding], expected[~padding], rtol=1e-4, atol=1e-5)


@pytest.mark.once
def test_the_fast_paths_run_in_memory_of_the_devices_own(musa):
    done = run_python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "(fast_path or packed or deterministic or replay or broadcast or without_elements or mask)"
        " and not memory_of",
        MUSA_EMULATOR_MEMORY="strict",
        TORCH_MUSA_FALLBACK="error",
    )
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_runs_attention_in_its_dtype(musa, dtype):
    x = _heads(2, 2, 6, 16).requires_grad_()
    with torch.autocast("musa", dtype=dtype):
        out = scaled_dot_product_attention(x, x, x, is_causal=True)
    assert out.dtype == dtype
    out.float().sum().backward()
    host = x.detach().cpu().requires_grad_()
    scaled_dot_product_attention(host, host, host, is_causal=True).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), host.grad, rtol=5e-2, atol=5e-2)


@needs_mudnn_first
def test_the_profiler_names_the_operators(musa):
    x = _heads(2, 2, 6, 16)
    with torch.profiler.profile() as profile:
        scaled_dot_product_attention(x, x, x)
    names = {event.key for event in profile.key_averages()}
    assert {"aten::scaled_dot_product_attention", FUSED_OP} <= names


def test_nested_tensors_with_a_ragged_batch(musa):
    """Jagged tensors whose second dimension is ragged: torch passes their values to the dense operator."""
    parts = [torch.randn(n, 2, 6, 8) for n in (2, 3)]

    def run(device):
        leaves = [part.to(device).requires_grad_() for part in parts]
        nested = torch.nested.as_nested_tensor(leaves, layout=torch.jagged)
        out = scaled_dot_product_attention(nested, nested, nested)
        out.values().sum().backward()
        return out.values().detach().cpu(), [leaf.grad.cpu() for leaf in leaves]

    torch.testing.assert_close(run("musa"), run("cpu"))


def test_nested_tensors_of_sequences(musa):
    """Jagged tensors of sequences with several heads, as in modules."""
    parts = [torch.randn(n, 32) for n in (3, 5)]

    def run(device):
        leaves = [part.to(device).requires_grad_() for part in parts]
        nested = torch.nested.as_nested_tensor(leaves, layout=torch.jagged)
        heads = nested.unflatten(-1, [4, 8]).transpose(1, 2)
        out = scaled_dot_product_attention(heads, heads, heads)
        out.values().square().sum().backward()
        return out.values().detach().cpu(), [leaf.grad.cpu() for leaf in leaves]

    torch.testing.assert_close(run("musa"), run("cpu"))
