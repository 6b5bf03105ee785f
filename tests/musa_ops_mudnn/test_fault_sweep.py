# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each call of muDNN is made to fail: the error names the call, nothing leaks, and the next call works."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from tests.harness.emulator import INVALID_VALUE, MEMORY_ALLOCATION, UNKNOWN, Emulator
from tests.harness.sweeps import calls_to_fail
from tests.musa_ops_mudnn.test_symbols import imported, of_mudnn

NOT_SUPPORTED = 801
_MOST_CALLS = 600

STATUSES = {
    MEMORY_ALLOCATION: "ALLOC_FAILED",
    NOT_SUPPORTED: "NOT_SUPPORTED",
    INVALID_VALUE: "INVALID_PARAMETER",
    UNKNOWN: "EXECUTION_FAILED",
}


def _x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.linspace(-2, 3, max(1, torch.Size(shape).numel())).reshape(shape).to(dtype).to("musa")


def _leaf(*shape: int) -> torch.Tensor:
    return _x(*shape).requires_grad_()


def _indices(*values: int) -> torch.Tensor:
    return torch.tensor(values, device="musa")


def _ctc() -> torch.Tensor:
    probabilities = torch.randn(6, 2, 4).log_softmax(2).to("musa").requires_grad_()
    targets, lengths = torch.tensor([[1, 2], [3, 1]]).to("musa"), torch.tensor([6, 6])
    return functional.ctc_loss(probabilities, targets, lengths.to("musa"), torch.tensor([2, 2]).to("musa"))


def _attention(size: int) -> torch.Tensor:
    """Attention with the head size; flash attention supports up to 128 on every card that has it."""
    q, k, v = (_leaf(1, 2, 4, size) for _ in range(3))
    return torch.ops.aten._scaled_dot_product_fused_attention_overrideable(q, k, v)[0]


def _packed_attention() -> torch.Tensor:
    offsets = torch.tensor([0, 1, 4], dtype=torch.int32, device="musa")
    q, k, v = (_leaf(4, 2, 16) for _ in range(3))
    return torch.ops.aten._flash_attention_forward(q, k, v, offsets, offsets, 3, 3, 0.0, False, False)[0]


def _scaled_mm() -> torch.Tensor:
    a, b = (_x(16, 16).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="musa")
    return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _gradient(result: torch.Tensor) -> None:
    result.sum().backward()


def _layer(make: Callable[[], torch.nn.Module], *shape: int, training: bool = True) -> torch.Tensor:
    return make().to("musa").train(training)(_leaf(*shape))


def _scattered(reduce: str) -> torch.Tensor:
    return _x(4, 3).scatter(0, torch.zeros(1, 3, dtype=torch.int64, device="musa"), _x(1, 3), reduce=reduce)


_NN = torch.nn
_OPS = torch.ops.torch_musa

# An operation for each computing call of muDNN. The calls are read from the pack's imports.
SCENARIOS: dict[str, Callable[[], object]] = {
    "BatchMatMul::Run": lambda: torch.bmm(_x(2, 3, 4), _x(2, 4, 5)),
    "BatchMatMul::RunLt": _scaled_mm,
    "BatchMatMul::RunWithBiasAdd": lambda: torch.baddbmm(_x(2, 3, 5), _x(2, 3, 4), _x(2, 4, 5)),
    "BatchNorm::RunBwd": lambda: _gradient(_layer(lambda: _NN.BatchNorm2d(3), 2, 3, 4, 4)),
    "BatchNorm::RunComposite": lambda: _layer(lambda: _NN.BatchNorm2d(3), 2, 3, 4, 4),
    "BatchNorm::RunPure": lambda: _layer(lambda: _NN.BatchNorm2d(3), 2, 3, 4, 4, training=False),
    "Binary::Run": lambda: _x(3, 4) + _x(4),
    "CTCLoss::Run": _ctc,
    "CTCLoss::RunBwd": lambda: _gradient(_ctc()),
    "Concat::Run": lambda: torch.cat([_x(2, 3), _x(4, 3)]),
    "Convolution::GetRecommendBackwardDataAlgorithm": lambda: _gradient(
        _layer(lambda: _NN.Conv2d(3, 4, 3), 2, 3, 6, 6)
    ),
    "Convolution::GetRecommendBackwardFilterAlgorithm": lambda: _gradient(
        _layer(lambda: _NN.Conv2d(3, 4, 3), 2, 3, 6, 6)
    ),
    "Convolution::GetRecommendForwardAlgorithm": lambda: _layer(lambda: _NN.Conv2d(3, 4, 3), 2, 3, 6, 6),
    "Convolution::Run": lambda: _layer(lambda: _NN.Conv2d(3, 4, 3, bias=False), 2, 3, 6, 6),
    "Convolution::RunBwdData": lambda: _gradient(_layer(lambda: _NN.Conv2d(3, 4, 3), 2, 3, 6, 6)),
    "Convolution::RunBwdFilter": lambda: _gradient(_layer(lambda: _NN.Conv2d(3, 4, 3), 2, 3, 6, 6)),
    "Convolution::RunFusion": lambda: _OPS.conv2d_bias_act(_x(1, 3, 6, 6), _x(4, 3, 3, 3), activation="relu"),
    "CrossEntropyLoss::Run": lambda: _OPS.cross_entropy(_x(3, 4), _indices(0, 2, 1)),
    "CrossEntropyLoss::RunBwd": lambda: _gradient(_OPS.cross_entropy(_leaf(3, 4), _indices(0, 2, 1))),
    "Cum::Run": lambda: torch.cumsum(_x(3, 4), 1),
    "Dot::Run": lambda: torch.dot(_x(5), _x(5)),
    "Dropout::RunDropout": lambda: functional.dropout(_leaf(50), 0.5),
    "Dropout::RunDropoutBwd": lambda: _gradient(functional.dropout(_leaf(50), 0.5)),
    "Fill::Run": lambda: _x(3, 4).fill_(2),
    "GatherX::Run": lambda: torch.gather(_x(3, 4), 0, _indices(0, 2, 1, 0).view(1, 4)),
    "Glu::Run": lambda: functional.glu(_x(3, 4)),
    "GroupNorm::Run": lambda: _layer(lambda: _NN.GroupNorm(2, 4), 2, 4, 3),
    "Interpolate::Run": lambda: functional.interpolate(_x(1, 2, 4, 4), scale_factor=2, mode="bilinear"),
    "Interpolate::RunBackward": lambda: _gradient(
        functional.interpolate(_leaf(1, 2, 4, 4), scale_factor=2, mode="bilinear")
    ),
    "LayerNorm::Run": lambda: _layer(lambda: _NN.LayerNorm(4), 3, 4),
    "LayerNorm::RunBwd": lambda: _gradient(_layer(lambda: _NN.LayerNorm(4), 3, 4)),
    "MaskedScatter::Run": lambda: _x(5).masked_scatter(_x(5) > 0, _x(5)),
    "MaskedSelect::Run": lambda: torch.masked_select(_x(5), _x(5) > 0),
    "MatMul::Run": lambda: _x(3, 4) @ _x(4, 5),
    "MatMul::RunWithBiasAdd": lambda: torch.addmm(_x(5), _x(3, 4), _x(4, 5)),
    "NLLLoss::Run": lambda: functional.nll_loss(_x(3, 4), _indices(0, 2, 1)),
    "NLLLoss::RunBwd": lambda: _gradient(functional.nll_loss(_leaf(3, 4), _indices(0, 2, 1))),
    "Nonzero::Run": lambda: torch.nonzero(_x(5) > 0),
    "Pad::Run": lambda: functional.pad(_x(1, 2, 4, 4), (1, 1, 1, 1), mode="reflect"),
    "Permute::Run": lambda: _x(4, 3).t().contiguous(),
    "Pooling::Run": lambda: functional.max_pool2d(_x(1, 2, 4, 4), 2),
    "Pooling::RunBwd": lambda: _gradient(functional.max_pool2d(_leaf(1, 2, 4, 4), 2)),
    "RMSNorm::Run": lambda: _layer(lambda: _NN.RMSNorm(4), 3, 4),
    "RMSNorm::RunBwd": lambda: _gradient(_layer(lambda: _NN.RMSNorm(4), 3, 4)),
    "Reduce::Run": lambda: _x(3, 4).sum(1),
    "Reduce::RunIndices": lambda: _x(3, 4).argmax(1),
    "Reduce::RunWithIndices": lambda: _x(3, 4).max(1),
    "Rope::Run": lambda: _OPS.rope(_x(1, 4, 2, 8), _x(4, 8)),
    "Rope::RunBwd": lambda: _gradient(_OPS.rope(_leaf(1, 4, 2, 8), _x(4, 8))),
    "ScaledDotProductAttention::RunFlash": lambda: _attention(16),
    "ScaledDotProductAttention::RunFlashBwd": lambda: _gradient(_attention(16)),
    "ScaledDotProductAttention::RunFlashVarlen": lambda: _packed_attention(),
    "ScaledDotProductAttention::RunFlashVarlenBwd": lambda: _gradient(_packed_attention()),
    "ScaledDotProductAttention::RunMath": lambda: _attention(256),
    "ScaledDotProductAttention::RunMathBwd": lambda: _gradient(_attention(256)),
    "Scatter::Run": lambda: _scattered("add"),
    "ScatterND::Run": lambda: _x(4, 3).index_put((_indices(0, 2),), _x(2, 3), accumulate=True),
    "Softmax::Run": lambda: _x(3, 4).softmax(1),
    "Softmax::RunBwd": lambda: _gradient(_leaf(3, 4).softmax(1)),
    "Sort::Run": lambda: _x(3, 4).sort(1),
    "SwiGlu::Run": lambda: _OPS.swiglu(_x(3, 4)),
    "SwiGlu::RunBwd": lambda: _gradient(_OPS.swiglu(_leaf(3, 4))),
    "Ternary::Run": lambda: torch.where(_x(5) > 0, _x(5), _x(5)),
    "TopK::Run": lambda: _x(3, 4).topk(2),
    "Unary::Run": lambda: _x(3, 4).cos(),
    "Unique::Run": lambda: torch.unique(_indices(1, 2, 2, 3), return_counts=True),
}


def computing_calls() -> list[str]:
    """Returns Class::method of each member that the pack's library imports and that may run out of memory."""
    from musa_ops_mudnn import _library

    library = Path(_library.paths()[-1])
    if not library.exists():
        return []
    names = {symbol.partition("(")[0].removeprefix("musa::dnn::") for symbol in of_mudnn(imported(library))}
    return sorted(name for name in names if re.search(r"::(Run\w*|GetRecommend\w*)$", name))


def _settled(musa) -> int:
    gc.collect()
    musa.synchronize()
    return musa.memory_allocated()


def _failure(scenario: Callable[[], object]) -> Exception | None:
    try:
        scenario()
    except Exception as error:  # noqa: BLE001 - the caller checks the exception
        return error.with_traceback(None)
    return None


def _reached(emulator: Emulator, call: str, scenario: Callable[[], object]) -> bool:
    before = emulator.calls(f"musa::dnn::{call}")
    scenario()
    return emulator.calls(f"musa::dnn::{call}") > before


def test_the_pack_was_built():
    assert len(computing_calls()) > 40


@pytest.mark.parametrize("call", computing_calls())
def test_a_call_that_fails_is_named_and_leaves_nothing_behind(musa, emulator, call):
    assert call in SCENARIOS, f"the pack calls musa::dnn::{call}. Fix: add a scenario that calls it"
    scenario = SCENARIOS[call]
    assert _reached(emulator, call, scenario), f"the scenario does not call musa::dnn::{call}"
    before = _settled(musa)
    for code, status in STATUSES.items():
        emulator.fail_next(f"musa::dnn::{call}", code)
        error = _failure(scenario)
        assert isinstance(error, RuntimeError), f"{call}, {status}: {error!r}"
        text = str(error)
        assert f"muDNN answered {status} to " in text, text
        assert call in text, text
        assert "INTERNAL ASSERT" not in text, text
        assert isinstance(error, torch.OutOfMemoryError) == (code == MEMORY_ALLOCATION), repr(error)
        del error
        assert _failure(scenario) is None, f"{call}: the next call failed too, after {status}"
        assert _settled(musa) == before, f"{call}: memory leaked after {status}"


def test_no_scenario_is_stale():
    assert sorted(SCENARIOS) == computing_calls()


def _training_step() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.1),
        torch.nn.Linear(16, 5),
    ).to("musa")
    loss = functional.cross_entropy(model(_x(2, 1, 4, 4)), _indices(1, 4))
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9).step()


def _attention_block() -> None:
    torch.manual_seed(0)
    norm, query, out = _NN.LayerNorm(8).to("musa"), _NN.Linear(8, 8).to("musa"), _NN.Linear(8, 8).to("musa")
    x, memory = _leaf(1, 4, 8), _x(1, 2, 4, 4)
    heads = query(norm(x)).view(1, 4, 2, 4).transpose(1, 2)
    attended = functional.scaled_dot_product_attention(heads, memory, memory)
    functional.gelu(out(attended.transpose(1, 2).reshape(1, 4, 8))).square().mean().backward()


def _selection() -> None:
    x = _x(6, 4)
    assert x[x > 0].numel() == x.topk(4).values.gt(0).sum().item() > 0
    x.index_add_(0, _indices(1, 3), _x(2, 4)).cumsum(0).sort(1)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(MEMORY_ALLOCATION, id="out of memory"),
        pytest.param(NOT_SUPPORTED, id="not supported", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("scenario", [_training_step, _attention_block, _selection])
def test_any_sdk_call_of_a_scenario_may_fail(musa, emulator, scenario, code):
    for _ in range(2):
        scenario()
    before = _settled(musa)
    for n in calls_to_fail(_MOST_CALLS):
        where = f"{scenario.__name__} with SDK call {n} failing"
        emulator.fail_call(n, code)
        error = _failure(scenario)
        reached = not emulator.fault_pending()
        emulator.clear_faults()
        if not reached:
            assert error is None, f"{where}: failed without a fault: {error}"
            break
        if error is not None:
            assert isinstance(error, RuntimeError), f"{where}: {error!r}"
            assert re.search("musa|mudnn", str(error).lower()), f"{where}: {error}"
            assert "INTERNAL ASSERT" not in str(error), f"{where}: {error}"
            del error
        assert (_x(16) * 2).cpu().eq(torch.linspace(-2, 3, 16) * 2).all(), f"{where}: the next call is wrong"
        assert _settled(musa) == before, f"{where}: memory leaked"
    else:
        pytest.fail(f"{scenario.__name__} makes more than {_MOST_CALLS} SDK calls")
    assert n > 10, "the scenario makes too few SDK calls for a useful sweep"


def test_a_scenario_that_does_not_reach_its_call_is_noticed(emulator):
    assert not _reached(emulator, "Softmax::Run", SCENARIOS["Fill::Run"])
    assert _reached(emulator, "Fill::Run", SCENARIOS["Fill::Run"])
