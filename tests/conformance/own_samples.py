# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Arguments for overloads that torch's operator database does not call.

Most are derived: the database's calls on the CPU are recorded below autograd, and an out= or in-place form
gets the arguments of the recorded functional form. OWN has arguments for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .comparison import outcome_of
from .operators import OPS
from .transfer import tensors_in

# Operators of the database whose calls below autograd are recorded to derive the arguments of other forms.
_RECORDED = (
    "nn.functional.",
    "eq",
    "ne",
    "ge",
    "gt",
    "le",
    "lt",
    "clamp_max",
    "clamp_min",
    "index_put",
    "norm",
    "softmax",
)


def _tensor(
    *shape: int, dtype: torch.dtype = torch.float32, low: float = -2.0, high: float = 2.0
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)


def _quantization() -> dict[str, Any]:
    return {"quant_min": 0, "quant_max": 255}


def _optimizer(states: int, **settings: Any) -> tuple[tuple, dict]:
    """Lists of parameters, gradients and states for a fused optimizer."""
    lists = [[_tensor(3, 4), _tensor(5)] for _ in range(2)]
    lists += [[_tensor(3, 4, low=0.1), _tensor(5, low=0.1)] for _ in range(states)]
    return tuple(lists), settings


_ADAM = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": True, "maximize": False}
_SGD = {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "maximize": False}
_ADAGRAD = {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}


def _steps() -> list[torch.Tensor]:
    return [torch.tensor(2.0), torch.tensor(2.0)]


def _adam(lr: Any) -> tuple[tuple, dict]:
    lists, _ = _optimizer(3)
    return (*lists, _steps()), {"lr": lr, **_ADAM}


def _sgd(lr: Any) -> tuple[tuple, dict]:
    lists, _ = _optimizer(1)
    return lists, {"lr": lr, "is_first_step": False, **_SGD}


def _adagrad(lr: Any) -> tuple[tuple, dict]:
    lists, _ = _optimizer(1)
    return (*lists, _steps()), {"lr": lr, **_ADAGRAD}


def _isin(*arguments: Any) -> Callable[[], tuple[tuple, dict]]:
    return lambda: (arguments, {"assume_unique": False, "invert": False})


_FIVE = torch.tensor([1, 5, 7])
_ZERO_POINTS = torch.tensor([0, 3, 1])
_SCALES = torch.tensor([0.1, 0.2, 0.05])

# Overload -> its arguments without out=, as (args, kwargs); several calls in a list.
OWN: dict[str, list[Callable[[], tuple[tuple, dict]]]] = {
    "isin.Scalar_Tensor": [_isin(5, _FIVE), _isin(2.5, _tensor(3)), lambda: ((5, _FIVE), {"invert": True})],
    "isin.Tensor_Scalar": [
        _isin(_FIVE, 5),
        _isin(torch.tensor(5), 5),
        lambda: ((_FIVE, 7), {"invert": True}),
    ],
    "bucketize.Scalar": [
        lambda: ((3, _FIVE), {}),
        lambda: ((6.5, _FIVE.float()), {"out_int32": True, "right": True}),
    ],
    "remainder.Scalar_Tensor": [lambda: ((7, _FIVE), {}), lambda: ((-2.5, _tensor(3, 2)), {})],
    "pow.Scalar": [
        lambda: ((2, _FIVE), {}),
        lambda: ((1.5, _tensor(3, 2)), {}),
        lambda: ((1, _tensor(4)), {}),
    ],
    "prod.dim_int": [lambda: ((_tensor(3, 4), 1), {}), lambda: ((_FIVE, 0), {"keepdim": True})],
    "norm.ScalarOpt_dim_dtype": [lambda: ((_tensor(3, 4), 2, [1], False), {"dtype": torch.float64})],
    "norm.ScalarOpt_dim": [lambda: ((_tensor(3, 4), 1, [0], True), {})],
    "index.Tensor": [lambda: ((_tensor(3, 4), [torch.tensor([0, 2]), None]), {})],
    "unique_dim_consecutive": [
        lambda: ((torch.tensor([[1, 2], [1, 2], [3, 4]]), 0), {"return_inverse": True, "return_counts": True})
    ],
    "embedding_renorm_": [lambda: ((_tensor(5, 3), torch.tensor([0, 2, 2]), 1.0, 2.0), {})],
    "_foreach_pow.ScalarAndTensor": [lambda: ((2.0, [_tensor(3), _tensor(2, 2)]), {})],
    "_fused_adam_": [lambda: _adam(0.1)],
    "_fused_adam_.tensor_lr": [lambda: _adam(torch.tensor(0.1))],
    "_fused_adamw_": [lambda: _adam(0.1)],
    "_fused_adamw_.tensor_lr": [lambda: _adam(torch.tensor(0.1))],
    "_fused_sgd_": [lambda: _sgd(0.1)],
    "_fused_sgd_.tensor_lr": [lambda: _sgd(torch.tensor(0.1))],
    "_fused_adagrad_": [lambda: _adagrad(0.1)],
    "_fused_adagrad_.tensor_lr": [lambda: _adagrad(torch.tensor(0.1))],
    "_addmm_activation": [
        lambda: ((_tensor(4), _tensor(3, 5), _tensor(5, 4)), {}),
        lambda: ((_tensor(4), _tensor(3, 5), _tensor(5, 4)), {"use_gelu": True, "beta": 0.5, "alpha": 2}),
    ],
    "_native_batch_norm_legit_no_training": [
        lambda: ((_tensor(2, 3, 4), _tensor(3), _tensor(3), _tensor(3), _tensor(3, low=0.5), 0.1, 1e-5), {})
    ],
    "_embedding_bag_forward_only": [
        lambda: ((_tensor(5, 3), torch.tensor([0, 4, 1, 2]), torch.tensor([0, 2])), {"mode": 1})
    ],
    "_weight_norm_interface": [lambda: ((_tensor(3, 4), _tensor(3, 1), 0), {})],
    "glu_jvp": [lambda: ((_tensor(3, 2), _tensor(3, 4), _tensor(3, 4), 1), {})],
    "_masked_softmax": [
        lambda: ((_tensor(2, 2, 3, 3), torch.tensor([[[[False, True, False]]]]).expand(2, 2, 3, 3), 3, 2), {})
    ],
    "_masked_softmax_backward": [
        lambda: ((_tensor(2, 3), _tensor(2, 3).softmax(1), torch.tensor([[False, True, False]] * 2), 1), {})
    ],
    "_upsample_bicubic2d_aa": [lambda: ((_tensor(1, 2, 8, 8), [4, 5], False), {})],
    "_upsample_bicubic2d_aa_backward": [lambda: ((_tensor(1, 2, 4, 5), [4, 5], [1, 2, 8, 8], False), {})],
    "_upsample_bilinear2d_aa": [lambda: ((_tensor(1, 2, 8, 8), [4, 5], False), {})],
    "_upsample_bilinear2d_aa_backward": [lambda: ((_tensor(1, 2, 4, 5), [4, 5], [1, 2, 8, 8], False), {})],
    "_upsample_nearest_exact1d": [lambda: ((_tensor(1, 2, 8), [5]), {})],
    "_upsample_nearest_exact1d_backward": [lambda: ((_tensor(1, 2, 5), [5], [1, 2, 8]), {})],
    "_upsample_nearest_exact2d": [lambda: ((_tensor(1, 2, 8, 8), [5, 3]), {})],
    "_upsample_nearest_exact2d_backward": [lambda: ((_tensor(1, 2, 5, 3), [5, 3], [1, 2, 8, 8]), {})],
    "_upsample_nearest_exact3d": [lambda: ((_tensor(1, 2, 4, 4, 4), [3, 5, 2]), {})],
    "_upsample_nearest_exact3d_backward": [
        lambda: ((_tensor(1, 2, 3, 5, 2), [3, 5, 2], [1, 2, 4, 4, 4]), {})
    ],
    "fake_quantize_per_tensor_affine_cachemask": [lambda: ((_tensor(3, 4), 0.1, 3), _quantization())],
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": [
        lambda: (
            (_tensor(3, 4), torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), torch.tensor(1)),
            _quantization(),
        )
    ],
    "fake_quantize_per_channel_affine_cachemask": [
        lambda: ((_tensor(3, 4), _SCALES, _ZERO_POINTS.int(), 0), _quantization())
    ],
    "_fake_quantize_learnable_per_tensor_affine": [
        lambda: ((_tensor(3, 4), torch.tensor([0.1]), torch.tensor([3.0])), _quantization())
    ],
    "_fake_quantize_learnable_per_tensor_affine_backward": [
        lambda: (
            (_tensor(3, 4), _tensor(3, 4, low=-9), torch.tensor([0.1]), torch.tensor([3.0])),
            _quantization(),
        )
    ],
    "_fake_quantize_learnable_per_channel_affine": [
        lambda: ((_tensor(3, 4), _SCALES, _ZERO_POINTS.float(), 0), _quantization())
    ],
    "_fake_quantize_learnable_per_channel_affine_backward": [
        lambda: ((_tensor(3, 4), _tensor(3, 4, low=-9), _SCALES, _ZERO_POINTS.float(), 0), _quantization())
    ],
    "_assert_async": [lambda: ((torch.tensor(True),), {})],
    "_assert_async.msg": [lambda: ((torch.tensor(True), "holds"), {})],
    "_functional_assert_async.msg": [lambda: ((torch.tensor(True), "holds", torch.tensor(0.0)), {})],
    # Their numbers depend on the device's generator, so only shapes, dtypes and ranges are compared.
    "random_": [lambda: ((torch.zeros(50, dtype=torch.int64),), {})],
    "random_.to": [lambda: ((torch.zeros(50, dtype=torch.int64), 9), {})],
    "normal.float_Tensor": [lambda: ((0.5, _tensor(50, low=0.1)), {})],
}
# The CPU has no kernel for these.
REFERENCES: dict[str, Callable] = {
    "mm.dtype": lambda a, b, dtype: torch.mm(a.to(dtype), b.to(dtype)),
    "bmm.dtype": lambda a, b, dtype: torch.bmm(a.to(dtype), b.to(dtype)),
    "addmm.dtype": lambda x, a, b, dtype: torch.addmm(x.to(dtype), a.to(dtype), b.to(dtype)),
    "baddbmm.dtype": lambda x, a, b, dtype: torch.baddbmm(x.to(dtype), a.to(dtype), b.to(dtype)),
}


def _gathered(x: torch.Tensor, means: torch.Tensor, inverses: torch.Tensor, *settings: Any) -> tuple:
    """The mean and the inverse standard deviation over equally sized parts, from those of each part."""
    eps = settings[3]
    mean = means.mean(0)
    variance = (inverses.pow(-2) - eps + means.square()).mean(0) - mean.square()
    return mean, (variance + eps).rsqrt()


REFERENCES |= {
    "batch_norm_gather_stats": _gathered,
    "batch_norm_elemt": lambda x, weight, bias, mean, inverse, eps: torch.addcmul(
        bias[:, None], (x - mean[:, None]) * inverse[:, None], weight[:, None]
    ),
    # Their functional forms take the arguments of a factory.
    "range.out": lambda *arguments: torch.range(*arguments),
    "randperm.generator_out": lambda n, generator: torch.randperm(n),
}
# Only the first result is compared: the others are saved for backward, and no kernel writes all of them.
FIRST_RESULT = frozenset(("_ctc_loss.Tensor", "_embedding_bag_forward_only"))


def _half(*shape: int) -> torch.Tensor:
    return _tensor(*shape, dtype=torch.bfloat16)


def _eighths(*shape: int) -> torch.Tensor:
    return _tensor(*shape, dtype=torch.float8_e4m3fn)


def _target() -> torch.Tensor:
    return torch.arange(32).remainder(3).reshape(2, 4, 4)


OWN |= {
    "mm.dtype": [
        lambda: ((_half(3, 4), _half(4, 5), torch.float32), {}),
        lambda: ((_tensor(3, 4), _tensor(4, 5), torch.float32), {}),
    ],
    "bmm.dtype": [
        lambda: ((_half(2, 3, 4), _half(2, 4, 5), torch.float32), {}),
        lambda: ((_tensor(2, 3, 4), _tensor(2, 4, 5), torch.float32), {}),
    ],
    "addmm.dtype": [
        lambda: ((_half(3, 5), _half(3, 4), _half(4, 5), torch.float32), {}),
        lambda: ((_tensor(3, 5), _tensor(3, 4), _tensor(4, 5), torch.float32), {}),
    ],
    "baddbmm.dtype": [
        lambda: ((_half(2, 3, 5), _half(2, 3, 4), _half(2, 4, 5), torch.float32), {}),
        lambda: ((_tensor(2, 3, 5), _tensor(2, 3, 4), _tensor(2, 4, 5), torch.float32), {}),
    ],
}
_STATISTICS = (_tensor(3), _tensor(3), _tensor(3), _tensor(3, low=0.5))
OWN |= {
    "batch_norm_elemt": [lambda: ((_tensor(2, 3, 4), *_STATISTICS, 1e-5), {})],
    "batch_norm_gather_stats": [
        lambda: ((_tensor(2, 3, 4), _tensor(2, 3), _tensor(2, 3, low=0.5), None, None, 0.1, 1e-5, 8), {})
    ],
    "batch_norm_update_stats": [lambda: ((_tensor(2, 3, 4), _tensor(3), _tensor(3, low=0.5), 0.1), {})],
    "_batch_norm_with_update": [lambda: ((_tensor(2, 3, 4), *_STATISTICS, 0.1, 1e-5), {})],
    "_weight_norm_interface_backward": [
        lambda: (
            (_tensor(3, 4), _tensor(3, 4), _tensor(3, 1), _tensor(3, 4).norm(dim=1, keepdim=True), 0),
            {},
        )
    ],
    "adaptive_avg_pool2d": [
        lambda: ((_tensor(2, 3, 7, 5), [2, 3]), {}),
        lambda: ((_tensor(3, 4, 4), [4, 1]), {}),
    ],
    "adaptive_avg_pool3d": [lambda: ((_tensor(2, 3, 4, 7, 5), [2, 2, 3]), {})],
    "_adaptive_avg_pool3d_backward": [lambda: ((_tensor(2, 3, 2, 2, 3), _tensor(2, 3, 4, 7, 5)), {})],
    "clamp_max": [lambda: ((_tensor(3, 4), 0.5), {})],
    "gt.Scalar": [lambda: ((_tensor(3, 4), 0.5), {}), lambda: ((_FIVE, 3), {})],
    "logit_backward": [lambda: ((_tensor(3, 4), _tensor(3, 4, low=-0.5, high=1.5), 0.1), {})],
    "sigmoid_backward": [lambda: ((_tensor(3, 4), _tensor(3, 4).sigmoid()), {})],
    "nonzero_static": [lambda: ((_tensor(3, 4).gt(0),), {"size": 4})],
    "nll_loss2d_forward": [lambda: ((_tensor(2, 3, 4, 4), _target(), None, 1, -100), {})],
    "nll_loss2d_backward": [
        lambda: ((torch.tensor(1.5), _tensor(2, 3, 4, 4), _target(), None, 1, -100, torch.tensor(32.0)), {})
    ],
    "reflection_pad2d": [lambda: ((_tensor(2, 3, 4, 5), [1, 2, 3, 0]), {})],
    "reflection_pad2d_backward": [lambda: ((_tensor(2, 3, 7, 8), _tensor(2, 3, 4, 5), [1, 2, 3, 0]), {})],
    "reflection_pad3d": [lambda: ((_tensor(2, 3, 4, 5, 3), [1, 2, 3, 0, 1, 1]), {})],
    "reflection_pad3d_backward": [
        lambda: ((_tensor(2, 3, 6, 8, 6), _tensor(2, 3, 4, 5, 3), [1, 2, 3, 0, 1, 1]), {})
    ],
    "replication_pad3d": [lambda: ((_tensor(2, 3, 4, 5, 3), [1, 2, 3, 0, 1, 1]), {})],
    "replication_pad3d_backward": [
        lambda: ((_tensor(2, 3, 6, 8, 6), _tensor(2, 3, 4, 5, 3), [1, 2, 3, 0, 1, 1]), {})
    ],
    "upsample_nearest2d": [lambda: ((_tensor(1, 2, 8, 8), [5, 3]), {})],
    "upsample_nearest2d_backward": [lambda: ((_tensor(1, 2, 5, 3), [5, 3], [1, 2, 8, 8]), {})],
    "upsample_nearest3d": [lambda: ((_tensor(1, 2, 4, 4, 4), [3, 5, 2]), {})],
    "upsample_nearest3d_backward": [lambda: ((_tensor(1, 2, 3, 5, 2), [3, 5, 2], [1, 2, 4, 4, 4]), {})],
    "range.out": [lambda: ((1, 7, 1), {}), lambda: ((0.5, 3, 0.25), {})],
    "randperm.generator_out": [lambda: ((20,), {"generator": None})],
    "_scaled_mm": [
        lambda: (
            (_eighths(16, 32), _eighths(16, 32).t(), torch.tensor(0.5), torch.tensor(2.0)),
            {"out_dtype": torch.bfloat16},
        )
    ],
}
RANDOM = frozenset(
    (
        "random_",
        "random_.to",
        "normal.float_Tensor",
        "randperm.generator_out",
        "rrelu_with_noise",
        "rrelu_with_noise_",
        "rrelu_with_noise.out",
    )
)
# torch's CPU kernels of these leave an out= argument without elements as it is.
CPU_DOES_NOT_RESIZE = frozenset(("binary_cross_entropy.out", "binary_cross_entropy_backward.grad_input"))


class _Recorder(TorchDispatchMode):
    """Keeps the arguments of the first calls of each overload, as they were before the call."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.calls: dict[str, list[tuple[tuple, dict]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        kept = self.calls.setdefault(name_of(func), [])
        if len(kept) < self.most:
            kept.append(tree_map(_copy, (tuple(args), kwargs)))
        return func(*args, **kwargs)


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def name_of(func: Any) -> str:
    """aten.add.Tensor -> add.Tensor, aten.relu.default -> relu."""
    return func._schema.name.removeprefix("aten::") + (
        f".{func._overloadname}" if func._overloadname != "default" else ""
    )


def overload(name: str) -> Any:
    packet, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), variant or "default")


def outs_of(name: str) -> list[str]:
    return [argument.name for argument in overload(name)._schema.arguments if argument.is_out]


def related(name: str) -> list[str]:
    """The form itself, then the other overloads of its packet that have the same arguments."""
    packet = name.partition(".")[0]
    names = [name]
    for base in dict.fromkeys((packet, packet.removesuffix("_"), f"_{packet}")):
        for variant in getattr(torch.ops.aten, base, _Nothing).overloads():
            names.append(base if variant == "default" else f"{base}.{variant}")
    return [other for other in dict.fromkeys(names) if _inputs_of(other) == _inputs_of(name)]


class _Nothing:
    @staticmethod
    def overloads() -> list[str]:
        return []


def _inputs_of(name: str) -> list[tuple[str, str]]:
    arguments = overload(name)._schema.arguments
    return [(argument.name, str(argument.type)) for argument in arguments if not argument.is_out]


def recorded_calls(
    ops: Iterable[Any] | None = None, dtypes: Iterable[torch.dtype] = (torch.float32,), most: int = 3
) -> dict[str, list[tuple[tuple, dict]]]:
    """Calls below autograd of the database's samples, forward and backward, on the CPU.

    Args:
        ops: operators of the database; by default those from which the arguments of other forms are derived.
        most: the number of calls of an overload that are kept, for each dtype.
    """
    chosen = [op for op in OPS if op.name.startswith(_RECORDED)] if ops is None else list(ops)
    calls: dict[str, list[tuple[tuple, dict]]] = {}
    for dtype in dtypes:
        recorder = _Recorder(most)
        for op in chosen:
            if op.supports_dtype(dtype, "cpu"):
                _record(op, dtype, recorder)
        for name, kept in recorder.calls.items():
            calls.setdefault(name, []).extend(kept)
    return calls


def _record(op: Any, dtype: torch.dtype, recorder: _Recorder) -> None:
    torch.manual_seed(0)
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples: Iterator[Any] = iter(op.sample_inputs_func(op, "cpu", dtype, differentiable))
    for sample, _ in zip(samples, range(2)):
        # A few composite operators do not run below a dispatch mode; the calls before their error are kept.
        outcome_of(lambda: _run(op, sample, recorder))  # noqa: B023


def _run(op: Any, sample: Any, recorder: _Recorder) -> None:
    with recorder:
        result = op(sample.input, *sample.args, **sample.kwargs)
        outputs = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
        if outputs:
            torch.autograd.backward(outputs, [torch.ones_like(out) for out in outputs])
