# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch's flex_attention on musa with the switch on, without torch.compile and with each backend: values and
gradients against attention that is written out in float64 on the CPU, and torch's own on CPU tensors.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

from tests.musa_compile.comparison import assert_same

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa", "compiler")]

LENGTH = 160  # no multiple of the block of a mask, which is 128
ROWS, COLUMNS = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)


@pytest.fixture(autouse=True)
def _switched_on():
    with torch.musa.flex_attention.enabled():
        yield


@pytest.fixture(
    params=["uncompiled", "eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.inductor)]
)
def attend(request):
    """flex_attention, without torch.compile and with each backend."""
    if request.param == "uncompiled":
        return flex_attention
    return torch.compile(flex_attention, backend=request.param, fullgraph=True)


def causal(batch, head, row, column):
    return row >= column


def causal_mask(device="musa"):
    return create_block_mask(causal, None, None, LENGTH, LENGTH, device=device)


def operands(heads=4, key_heads=4, value_size=16, dtype=torch.float32):
    """Query, key and value on the CPU."""
    query = torch.randn(2, heads, LENGTH, 32, dtype=dtype)
    key = torch.randn(2, key_heads, LENGTH, 32, dtype=dtype)
    return query, key, torch.randn(2, key_heads, LENGTH, value_size, dtype=dtype)


def leaves(tensors, **options):
    return [tensor.detach().to(**options).requires_grad_() for tensor in tensors]


def written_out(query, key, value, bias=None, mask=None):
    """Attention, and the log-sum-exp and maximum of its scores. `mask` is true for scores that count."""
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ value, scores.logsumexp(-1), scores.amax(-1)


def assert_gradients(result, arguments, expected, references):
    gradient = torch.randn(expected.shape)
    actual = torch.autograd.grad(result, arguments, gradient.to("musa"))
    for each, reference in zip(
        actual, torch.autograd.grad(expected, references, gradient.double()), strict=True
    ):
        assert each.device.type == "musa"
        torch.testing.assert_close(each.cpu().double(), reference, rtol=1e-4, atol=2e-4)


def test_a_mask_a_captured_bias_and_their_gradients(attend):
    """The gradient of the bias is a sum over all scores of a head."""
    tensors = (*operands(), torch.randn(4))
    *query_key_value, bias = arguments = leaves(tensors, device="musa")
    *references, reference_bias = all_references = leaves(tensors, dtype=torch.float64)

    def distance(score, batch, head, row, column):
        return score + bias[head] * (row - column) / LENGTH

    expected, _, _ = written_out(
        *references, reference_bias[:, None, None] * (ROWS - COLUMNS) / LENGTH, ROWS >= COLUMNS
    )
    result = attend(*query_key_value, score_mod=distance, block_mask=causal_mask())
    assert result.device.type == "musa" and result.dtype == torch.float32
    assert_same(result.double(), expected)
    assert_gradients(result, arguments, expected, all_references)


def test_grouped_heads_and_auxiliary_outputs(attend):
    tensors = operands(heads=6, key_heads=2)
    arguments = leaves(tensors, device="musa")
    references = leaves(tensors, dtype=torch.float64)
    result, outputs = attend(
        *arguments,
        enable_gqa=True,
        return_aux=AuxRequest(lse=True, max_scores=True),
        kernel_options={"BLOCK_M": 64},
    )
    expected, log_sum, maximum = written_out(*references)
    assert_same(result.double(), expected)
    assert_same(outputs.lse.double(), log_sum)
    assert_same(outputs.max_scores.double(), maximum)
    # The log-sum-exp has a gradient too.
    joined = result.sum(-1) * outputs.lse
    assert_gradients(joined, arguments, expected.sum(-1) * log_sum, references)


def test_inference_in_half_precision(attend):
    """Captured tensors without gradients: documents that do not attend to each other."""
    document = (torch.arange(LENGTH) // 50).to("musa")

    def same_document(batch, head, row, column):
        return document[row] == document[column]

    query, key, value = (
        tensor.transpose(1, 2).contiguous().transpose(1, 2) for tensor in operands(dtype=torch.float16)
    )
    mask = create_block_mask(same_document, None, None, LENGTH, LENGTH, device="musa")
    with torch.no_grad():
        result = attend(query.to("musa"), key.to("musa"), value.to("musa"), block_mask=mask)
    expected, _, _ = written_out(
        query.double(), key.double(), value.double(), mask=ROWS // 50 == COLUMNS // 50
    )
    assert result.dtype == torch.float16
    assert_same(result.double(), expected, 3e-3)


def test_rows_that_attend_to_nothing_are_zero(attend):
    tensors = operands()
    arguments = leaves(tensors, device="musa")
    mask = create_block_mask(
        lambda batch, head, row, column: row > column, None, None, LENGTH, LENGTH, device="musa"
    )
    result = attend(*arguments, block_mask=mask)
    assert result[:, :, 0].count_nonzero() == 0 and result[:, :, 1].count_nonzero() > 0
    for gradient in torch.autograd.grad(result.sum(), arguments):
        assert gradient.isfinite().all()


def test_without_gradients_as_torch_computes_it_on_the_cpu():
    tensors = operands()

    def capped(score, batch, head, row, column):
        return (score / 5).tanh() * 5

    expected = flex_attention(*tensors, score_mod=capped, block_mask=causal_mask("cpu"))
    result = flex_attention(
        *(tensor.to("musa") for tensor in tensors), score_mod=capped, block_mask=causal_mask()
    )
    assert_same(result, expected)


def test_under_autocast(attend):
    tensors = operands()
    arguments = leaves(tensors, device="musa")
    with torch.autocast("musa", dtype=torch.bfloat16):
        result = attend(*arguments)
        gradients = torch.autograd.grad(result.float().sum(), arguments)
    assert result.dtype == torch.bfloat16
    expected, _, _ = written_out(*(tensor.double() for tensor in tensors))
    assert_same(result.double(), expected, 3e-2)
    assert all(gradient.dtype == torch.float32 for gradient in gradients)


def test_float64_is_not_cast_by_autocast():
    query, key, value = (tensor.to("musa") for tensor in operands(dtype=torch.float64))
    with torch.autocast("musa", dtype=torch.bfloat16):
        assert flex_attention(query, key, value).dtype == torch.float64


@pytest.mark.inductor
@pytest.mark.full
def test_symbolic_sizes():
    compiled = torch.compile(flex_attention, fullgraph=True, dynamic=True)
    for length in (64, 96):
        tensors = [torch.randn(2, 2, length, 16) for _ in range(3)]
        arguments, references = leaves(tensors, device="musa"), leaves(tensors, dtype=torch.float64)
        expected, _, _ = written_out(*references)
        result = compiled(*arguments)
        assert_same(result.double(), expected)
        assert_gradients(result, arguments, expected, references)


def test_the_block_mask_is_on_the_accelerator_by_default():
    mask = create_block_mask(causal, None, None, LENGTH, LENGTH)
    assert mask.kv_num_blocks.device.type == "musa"
    assert torch.equal(mask.to_dense().cpu(), causal_mask("cpu").to_dense())


def test_errors_are_those_of_torch():
    query, key, value = (tensor.to("musa") for tensor in operands())
    with pytest.raises(ValueError, match="same device type"):
        flex_attention(query, key.cpu(), value)
    with pytest.raises(RuntimeError, match="q/k/v and block_mask to be on the same device"):
        flex_attention(query, key, value, block_mask=causal_mask("cpu"))
    with pytest.raises(ValueError, match="same number of heads"):
        flex_attention(query, key[:, :2], value[:, :2])
    with pytest.raises(ValueError, match="is only supported on"):
        flex_attention(*(tensor.to("meta") for tensor in (query, key, value)))


def test_the_switch_restores_torchs_check():
    from torch.nn.attention import flex_attention as module

    switch = torch.musa.flex_attention
    operand = torch.randn(1, 1, 16, 16, device="musa")
    with switch.enabled():
        pass
    assert switch.is_enabled()  # the block of the fixture is not over
    switch.disable()
    assert not switch.is_enabled() and module._validate_device.__module__ == module.__name__
    with pytest.raises(ValueError, match="Found input tensors on musa"):
        flex_attention(operand, operand, operand)
    with switch.enabled():
        assert_same(flex_attention(operand, operand, operand), written_out(operand, operand, operand)[0])
    assert not switch.is_enabled()
