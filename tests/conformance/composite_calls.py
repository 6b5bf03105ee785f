# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Valid calls of operators below autograd: those that the databases reach on the device, and own ones of
operators that no database calls, or that the CPU does not have.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

from tests.conformance import modules, operators, own_samples, reach
from tests.conformance.comparison import outcome_of
from tests.conformance.transfer import tensors_in, to_device

Call = tuple[str, list, dict]
_KEPT = 2  # calls of an overload with operands of different ranks


class _Recorder(TorchDispatchMode):
    """Keeps the arguments of the first calls of each overload that a pack serves."""

    def __init__(self) -> None:
        super().__init__()
        self._served = reach.served()
        self.calls: dict[str, dict[tuple, tuple[list, dict]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        name = own_samples.name_of(func)
        if (name if "::" in name else f"aten::{name}") in self._served:
            self._keep(name, args, kwargs)
        return func(*args, **kwargs)

    def _keep(self, name: str, args: tuple, kwargs: dict) -> None:
        kept = self.calls.setdefault(name, {})
        tensors = tensors_in((args, kwargs))
        ranks = tuple(tensor.dim() for tensor in tensors)
        plain = all(tensor.layout is torch.strided and tensor.numel() for tensor in tensors)
        if tensors and plain and ranks not in kept and len(kept) < _KEPT:
            with _disable_current_modes():
                kept[ranks] = tree_map(_copy, (list(args), dict(kwargs)))


def _copy(value: Any) -> Any:
    return value.detach().cpu().clone() if isinstance(value, torch.Tensor) else value


def _backward(result: Any) -> None:
    outputs = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
    torch.autograd.backward(outputs, [torch.ones_like(out) for out in outputs])


@cache
def recorded(device: str, every: int = 1) -> list[Call]:
    """Calls of overloads that packs serve, by the operator and module databases, on the CPU.

    ``every`` n-th operator and module is called.
    """
    recorder = _Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in operators.float_cases()[::every]:
            for sample in case.samples(False, requires_grad=case.op.supports_autograd):
                for form in reach._forms(case.op, sample, device):
                    with recorder:
                        outcome_of(form)
        for case in modules.cases()[::every]:
            for inputs in list(case.inputs())[:3]:
                with recorder:
                    outcome_of(lambda c=case, i=inputs: _run_module(c, i, device))
    return [(name, *call) for name, kept in recorder.calls.items() for call in kept.values()]


def _run_module(case: Any, inputs: Any, device: str) -> None:
    given = inputs.constructor_input
    module = case.info.module_cls(*given.args, **given.kwargs).to(device).train(case.training)
    args, kwargs = to_device(device, inputs.forward_input.args, inputs.forward_input.kwargs)
    _backward(module(*args, **kwargs))


_tensor = own_samples._tensor
_SEED = torch.zeros((), dtype=torch.int64)
_NONE = torch.empty(0)


def _attention() -> dict[str, list]:
    qkv = [_tensor(1, 2, 4, 8) for _ in range(3)]
    out, sums, long_sums = _tensor(1, 2, 4, 8), _tensor(1, 2, 4), _tensor(1, 2, 32)
    flash = [[_tensor(1, 4, 2, 8) for _ in range(3)], torch.tensor([0, 4], dtype=torch.int32)]
    packed, offsets = [_tensor(4, 2, 8) for _ in range(3)], flash[1]
    return {
        "_scaled_dot_product_flash_attention": [*qkv, 0.0, True],
        "_scaled_dot_product_flash_attention_backward": [
            *(out, *qkv, out, sums, _NONE, _NONE, 4, 4, 0.0, True, _SEED, _SEED)
        ],
        "_scaled_dot_product_efficient_attention": [*qkv, _tensor(1, 2, 4, 4), True],
        "_scaled_dot_product_efficient_attention_backward": [
            *(out, *qkv, _tensor(1, 2, 4, 4), out, long_sums, _SEED, _SEED, 0.0, [True] * 4)
        ],
        "_scaled_dot_product_cudnn_attention": [*qkv, _tensor(1, 2, 4, 4), True],
        "_scaled_dot_product_cudnn_attention_backward": [
            *(out, *qkv, out, sums, _SEED, _SEED, _tensor(1, 2, 4, 4), _NONE, _NONE, 4, 4, 0.0, False)
        ],
        "_scaled_dot_product_fused_attention_overrideable": [*qkv, _tensor(1, 2, 4, 4)],
        "_scaled_dot_product_fused_attention_overrideable_backward": [
            *(
                out,
                *qkv,
                _tensor(1, 2, 4, 4),
                [True] * 4,
                out,
                sums,
                _NONE,
                _NONE,
                4,
                4,
                0.0,
                False,
                _SEED,
                _SEED,
            )
        ],
        "_flash_attention_forward": [*packed, offsets, offsets, 4, 4, 0.0, True, False],
        "_flash_attention_backward": [
            *(packed[0], *packed, packed[0], _tensor(2, 4), offsets, offsets, 4, 4, 0.0, True, _SEED, _NONE)
        ],
    }


def _recurrent() -> dict[str, list]:
    lstm = [_tensor(2, 12), _tensor(2, 12), _tensor(2, 3), _tensor(12), _tensor(12)]
    gru = [_tensor(2, 9), _tensor(2, 9), _tensor(2, 3), _tensor(9), _tensor(9)]
    state, layer = _tensor(2, 5), [_tensor(20, 4), _tensor(20, 5), _tensor(20), _tensor(20)]
    lengths = ([2, 2, 2], 2, True, False)
    kept = [_tensor(6, 20), _tensor(6, 5), _tensor(6, 5), _tensor(6, 5)]
    return {
        "_thnn_fused_lstm_cell": lstm,
        "_thnn_fused_lstm_cell_backward_impl": [*(_tensor(2, 3) for _ in range(4)), _tensor(2, 12), True],
        "_thnn_fused_gru_cell": gru,
        "_thnn_fused_gru_cell_backward": [_tensor(2, 3), _tensor(2, 15), True],
        "torch_musa::_recurrent_layer": [_tensor(3, 2, 4), [state, state], layer, *lengths, True],
        "torch_musa::_recurrent_layer_backward": [
            *(
                _tensor(3, 2, 5),
                state,
                state,
                _tensor(3, 2, 4),
                [state, state],
                layer,
                kept,
                *lengths,
                [True] * 3,
            )
        ],
    }


def _normalization() -> dict[str, list]:
    x, one, many = _tensor(2, 3, 4), _tensor(3), _tensor(2, 3, low=0.5)
    return {
        "batch_norm_stats": [x, 1e-5],
        "batch_norm_elemt": [x, one, one, one, one, 1e-5],
        "batch_norm_gather_stats": [x, many, many, one, one, 0.1, 1e-5, 8],
        "batch_norm_gather_stats_with_counts": [x, many, many, one, one, 0.1, 1e-5, torch.tensor([8.0, 8.0])],
        "batch_norm_backward_reduce": [x, x, one, one, one, True, True, True],
        "batch_norm_backward_elemt": [x, x, one, one, one, one, one, torch.tensor([8, 8], dtype=torch.int32)],
        "_native_batch_norm_legit.no_stats": [x, one, one, True, 0.1, 1e-5],
    }


def _layers() -> dict[str, list]:
    x, weight = _tensor(2, 4, 6, 6), _tensor(3, 4, 3, 3)
    steps = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    qkv = [_tensor(24, 8), _tensor(24), _tensor(8, 8), _tensor(8)]
    norms = [_tensor(8) for _ in range(4)]
    ffn = [_tensor(16, 8), _tensor(16), _tensor(8, 16), _tensor(8)]
    words = _tensor(2, 5, 8)
    return {
        "convolution_overrideable": [x, weight, _tensor(3), *steps],
        "convolution_backward_overrideable": [_tensor(2, 3, 4, 4), x, weight, *steps, [True] * 3],
        "_native_multi_head_attention": [words, words, words, 8, 2, *qkv],
        "_transformer_encoder_layer_fwd": [words, 8, 2, *qkv, False, False, 1e-5, *norms, *ffn],
        "native_dropout_backward": [_tensor(3, 4), _tensor(3, 4) > 0, 2.0],
        "dot": [_tensor(4), _tensor(4)],
        "vdot": [_tensor(4), _tensor(4)],
    }


def _embedding_bags() -> dict[str, list]:
    indices, bags = torch.tensor([0, 4, 1, 2]), torch.tensor([0, 0, 1, 1])
    grad, sizes, winners = _tensor(2, 3), torch.tensor([2, 2]), torch.tensor([[0, 4, 0], [1, 2, 2]])
    dense = "_embedding_bag_dense_backward"
    return {
        dense: [grad, indices, bags, sizes, winners, 5, False, 2, None],
        f"{dense} of means": [grad, indices, bags, sizes, winners, 5, False, 1, None],
        f"{dense} of sums": [grad, indices, bags, sizes, winners, 5, False, 0, _tensor(4)],
        "_embedding_bag_per_sample_weights_backward": [
            *(grad, _tensor(5, 3), indices, torch.tensor([0, 2]), bags, 0)
        ],
    }


def _of_packs() -> dict[str, list]:
    boxes = torch.tensor([[0.0, 0.0, 0.0, 4.0, 4.0], [1.0, 1.0, 1.0, 5.0, 5.0]])
    x, wide, pooled = _tensor(2, 3, 6, 6), _tensor(2, 12, 6, 6), _tensor(2, 3, 2, 2)
    image, places = (2, 3, 6, 6), torch.zeros(2, 3, 2, 2, dtype=torch.int32)
    deformed = [
        _tensor(2, 4, 5, 5),
        _tensor(3, 4, 3, 3),
        _tensor(2, 18, 3, 3),
        _tensor(2, 9, 3, 3),
        _tensor(3),
    ]
    steps = (1, 1, 0, 0, 1, 1, 1, 1, True)
    labels = torch.tensor([0, 2, 1])
    return {
        "torchvision::nms": [boxes[:, 1:], _tensor(2), 0.5],
        "torchvision::roi_align": [x, boxes, 1.0, 2, 2, 2, True],
        "torchvision::_roi_align_backward": [pooled, boxes, 1.0, 2, 2, *image, 2, True],
        "torchvision::roi_pool": [x, boxes, 1.0, 2, 2],
        "torchvision::_roi_pool_backward": [pooled, boxes, places, 1.0, 2, 2, *image],
        "torchvision::ps_roi_align": [wide, boxes, 1.0, 2, 2, 2],
        "torchvision::_ps_roi_align_backward": [pooled, boxes, places, 1.0, 2, 2, 2, 2, 12, 6, 6],
        "torchvision::ps_roi_pool": [wide, boxes, 1.0, 2, 2],
        "torchvision::_ps_roi_pool_backward": [pooled, boxes, places, 1.0, 2, 2, 2, 12, 6, 6],
        "torchvision::deform_conv2d": [*deformed, *steps],
        "torchvision::_deform_conv2d_backward": [_tensor(2, 3, 3, 3), *deformed, *steps],
        "torch_musa::cross_entropy": [_tensor(3, 4), labels, _tensor(4, low=0.5)],
        "torch_musa::cross_entropy_backward": [torch.tensor(1.0), _tensor(3, 4), labels, _tensor(4, low=0.5)],
        "torch_musa::swiglu": [_tensor(3, 8)],
        "torch_musa::swiglu_backward": [_tensor(3, 4), _tensor(3, 8)],
        "torch_musa::rope": [_tensor(2, 4, 2, 8), _tensor(4, 8)],
        "torch_musa::rope_backward": [_tensor(2, 4, 2, 8), _tensor(4, 8)],
        "torch_musa::conv2d_bias_act": [_tensor(2, 4, 6, 6), _tensor(3, 4, 3, 3), _tensor(3)],
        "_amp_foreach_non_finite_check_and_unscale_": [
            [_tensor(3), _tensor(4)],
            torch.zeros(1),
            torch.ones(1),
        ],
        "_amp_update_scale_": [
            torch.ones(1),
            torch.zeros(1, dtype=torch.int32),
            torch.zeros(1),
            2.0,
            0.5,
            10,
        ],
    }


def _gradients() -> dict[str, list]:
    """Calls of databases whose kernels once read or wrote past the end of an argument."""
    scores, labels = _tensor(6, 2, 4), torch.tensor([[1, 3], [3, 2]])
    places = torch.tensor([[[0, 3, 2], [1, 3, 3]]])
    return {
        "_log_softmax_backward_data": [_tensor(2, 3), _tensor(2, 3), 1, torch.float32],
        "_softmax_backward_data": [_tensor(2, 3), _tensor(2, 3), 1, torch.float32],
        "avg_pool2d_backward": [
            _tensor(2, 3, 2, 2),
            _tensor(2, 3, 4, 4),
            [2, 2],
            [2, 2],
            [0, 0],
            False,
            True,
            None,
        ],
        "_adaptive_avg_pool2d_backward": [_tensor(2, 4, 2, 2), _tensor(2, 4, 5, 5)],
        "reflection_pad1d_backward": [_tensor(2, 4, 6), _tensor(2, 4, 3), [2, 1]],
        "nll_loss2d_backward": [
            *(_tensor(1, 2, 3), _tensor(1, 4, 2, 3), places, None, 0, -100, torch.tensor(6.0))
        ],
        "unfold_backward": [_tensor(3, 4, 2), [3, 8], 1, 2, 2],
        "_ctc_loss": [scores, labels, [6, 6], [2, 2]],
    }


def own() -> list[Call]:
    """Calls that no database makes, and a few others. Words after a name distinguish an overload's calls."""
    every = _attention() | _recurrent() | _normalization() | _layers() | _gradients()
    every |= _embedding_bags() | _of_packs()
    return [(name.partition(" ")[0], args, {}) for name, args in every.items()]


def offered_by(provider: str, calls: list[Call]) -> list[Call]:
    """The calls of overloads for which a provider has a kernel."""
    rows = {row["op"]: row["candidates"] for row in torch.musa.ops.table()}
    return [call for call in calls if provider in rows[call[0] if "::" in call[0] else f"aten::{call[0]}"]]
