# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Small functions that together cover every kind of code that Inductor generates: pointwise kernels,
reductions, norms, indexing, views, mutation, matrix products, convolutions, operators that it calls through
the dispatcher, and symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, rand, randint, randn


@dataclass(frozen=True)
class Case:
    """A function, its inputs, and the tolerance between its compiled form and the CPU.

    Attributes:
        function: takes the inputs; returns a tensor or a tuple of tensors.
        inputs: makes the inputs on the CPU.
        gradients: whether the gradients of floating-point inputs are compared too.
        tolerance: absolute and relative. Fused kernels round once, while eager mode rounds after each
            operator, and sums have another order; the default is for float32.
        dynamic: the argument of `torch.compile`.
        writes_inputs: whether the inputs are compared after the call.
    """

    name: str
    function: Callable[..., Any]
    inputs: Callable[[], tuple[Tensor, ...]]
    gradients: bool = False
    tolerance: float = 1e-4
    dynamic: bool | None = None
    writes_inputs: bool = False


def _unary_functions(x):
    x = x.abs() + 0.1
    results = [x.exp(), x.log(), x.sqrt(), x.rsqrt(), x.sin(), x.cos(), x.tanh(), x.erf(), x.sigmoid()]
    return sum([*results, x.log1p(), x.expm1(), x.atan()])


def _where_and_limits(x, y):
    return torch.where(x > 0, x, y).clamp(-0.5, 0.5) + torch.maximum(x, y) - torch.minimum(x, y)


def _activations(x):
    first = F.relu(x) + F.gelu(x) + F.silu(x) + F.elu(x)
    return first + F.softplus(x) + F.leaky_relu(x) + F.hardswish(x) + F.mish(x)


def _integer_operators(a, b):
    return a // b, a % b, a & b, a | b, a ^ b, a << 1, a >> 1


def _lerp_and_addc(a, b, c):
    return torch.lerp(a, b, 0.3) + torch.addcmul(a, b, c, value=0.5) + torch.addcdiv(a, b, c.abs() + 1)


POINTWISE = [
    Case(
        "add_mul_sub_div",
        lambda a, b: (a + b) * a - b / (a.abs() + 1),
        lambda: (randn(33, 17), randn(33, 17)),
        gradients=True,
    ),
    Case("broadcast", lambda a, b: a * b + 1, lambda: (randn(8, 1, 5), randn(3, 1)), gradients=True),
    Case("unary_functions", _unary_functions, lambda: (randn(257),), gradients=True, tolerance=1e-3),
    Case("where_and_limits", _where_and_limits, lambda: (randn(64, 9), randn(64, 9)), gradients=True),
    Case("activations", _activations, lambda: (randn(64, 33),), gradients=True),
    Case("integer_operators", _integer_operators, lambda: (randint(1, 50, (70,)), randint(1, 9, (70,)))),
    Case(
        "booleans",
        lambda a, b: ((a > b) | (a == b), ~(a < b), (a != b).int().sum()),
        lambda: (randn(65), randn(65)),
    ),
    # Eager mode rounds to 8 bits after each operator, the fused kernel once.
    Case(
        "bfloat16", lambda x: (x * 2 + 1).relu().sum(-1), lambda: (randn(40, 65).bfloat16(),), tolerance=2e-2
    ),
    Case(
        "float16",
        lambda x: (x.float() * 2).half().softmax(-1),
        lambda: (randn(40, 65).half(),),
        tolerance=1e-2,
    ),
    Case("float64", lambda x: (x.sin() * x).sum(0), lambda: (randn(40, 65).double(),), gradients=True),
    Case(
        "int64_with_float", lambda x, i: x * i + i.float().sqrt(), lambda: (randn(33), randint(0, 9, (33,)))
    ),
    Case(
        "uint8_to_float",
        lambda x: x.float() / 255 * 2 - 1,
        lambda: (randint(0, 255, (3, 32, 32), dtype=torch.uint8),),
    ),
    Case("complex", lambda x: (torch.view_as_complex(x) * 2j).abs(), lambda: (randn(16, 2),)),
    Case(
        "powers",
        lambda x: x.abs() ** 2.5 + 2**x + x**3,
        lambda: (randn(129),),
        gradients=True,
        tolerance=1e-3,
    ),
    Case("lerp_and_addc", _lerp_and_addc, lambda: (randn(65), randn(65), randn(65)), gradients=True),
]


def _losses(a, b):
    return (
        F.mse_loss(a, b)
        + F.l1_loss(a, b)
        + F.huber_loss(a, b)
        + F.binary_cross_entropy_with_logits(a, b.sigmoid())
    )


REDUCTIONS = [
    Case(
        "sum_mean_var_std",
        lambda x: (x.sum(0), x.mean(-1), x.var(-1), x.std(0)),
        lambda: (randn(65, 33),),
        gradients=True,
    ),
    Case(
        "maxima_and_their_indices",
        lambda x: (x.amax(-1), x.argmax(-1), x.argmin(0), x.max(0)[0]),
        lambda: (randn(65, 33),),
    ),
    Case(
        "prod_any_all",
        lambda x: (x.abs().clamp(0.9, 1.1).prod(-1), (x > 2).any(0), (x > -9).all()),
        lambda: (randn(17, 33),),
    ),
    Case(
        "logsumexp_and_norms",
        lambda x: (x.logsumexp(-1), x.norm(dim=0), torch.linalg.vector_norm(x, 1)),
        lambda: (randn(17, 33),),
        gradients=True,
    ),
    Case(
        "cumsum_cumprod",
        lambda x: (x.cumsum(-1), x.sigmoid().cumprod(0)),
        lambda: (randn(17, 33),),
        gradients=True,
    ),
    Case("softmax", lambda x: (x.softmax(-1), x.log_softmax(0)), lambda: (randn(65, 130),), gradients=True),
    Case(
        "layer_norm",
        lambda x, w, b: F.layer_norm(x, (64,), w, b),
        lambda: (randn(9, 7, 64), randn(64), randn(64)),
        gradients=True,
    ),
    Case(
        "group_norm",
        lambda x, w, b: F.group_norm(x, 4, w, b),
        lambda: (randn(3, 8, 9, 9), randn(8), randn(8)),
        gradients=True,
    ),
    Case("rms_norm", lambda x, w: F.rms_norm(x, (64,), w), lambda: (randn(9, 64), randn(64)), gradients=True),
    Case(
        "batch_norm",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        lambda: (randn(6, 8, 9, 9), randn(8), randn(8)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case(
        "cross_entropy",
        lambda x, target: F.cross_entropy(x, target, label_smoothing=0.1),
        lambda: (randn(33, 10), randint(0, 10, (33,))),
        gradients=True,
    ),
    Case(
        "nll_loss_ignores_a_class",
        lambda x, target: F.nll_loss(x.log_softmax(-1), target, ignore_index=3),
        lambda: (randn(33, 10), randint(0, 10, (33,))),
        gradients=True,
    ),
    Case("losses", _losses, lambda: (randn(33, 5), randn(33, 5)), gradients=True),
]


def _constants_of_a_device(i):
    return F.one_hot(i, 7) + torch.arange(7, device=i.device) + torch.full((7,), 3, device=i.device)


INDEXING = [
    Case("embedding", F.embedding, lambda: (randint(0, 20, (4, 7)), randn(20, 16)), gradients=True),
    Case(
        "embedding_bag",
        lambda i, w: F.embedding_bag(i, w, mode="mean"),
        lambda: (randint(0, 20, (4, 7)), randn(20, 16)),
        gradients=True,
    ),
    Case(
        "index_select_gather",
        lambda x, i: (x.index_select(0, i), x.gather(0, i[:, None].expand(-1, 5)), x[i]),
        lambda: (randn(9, 5), randint(0, 9, (6,))),
        gradients=True,
    ),
    Case(
        "index_put",
        lambda x, i, v: x.clone().index_put((i,), v, accumulate=True),
        lambda: (randn(9, 5), torch.tensor([0, 2, 2, 8]), randn(4, 5)),
        gradients=True,
    ),
    Case(
        "scatter_add",
        lambda x, i, v: x.scatter_add(0, i, v) + x.scatter(0, i, v),
        lambda: (randn(9, 5), torch.stack([torch.randperm(9)[:4] for _ in range(5)], 1), randn(4, 5)),
    ),
    Case(
        "masks",
        lambda x: (x.masked_fill(x > 0, 7.0), torch.where(x > 0, x, 0).sum(), x.tril(), x.triu(1)),
        lambda: (randn(12, 12),),
        gradients=True,
    ),
    Case("topk_sort", lambda x: (*x.topk(3, -1), *x.sort(-1)), lambda: (randn(5, 17),)),
    Case("constants_of_a_device", _constants_of_a_device, lambda: (randint(0, 7, (5,)),)),
    Case(
        "bucketize",
        lambda x, bounds: (torch.bucketize(x, bounds), torch.searchsorted(bounds, x)),
        lambda: (randn(33), torch.linspace(-2, 2, 9)),
    ),
]


def _chain_of_views(x):
    return x.view(4, -1).t().contiguous()[1:, ::2].reshape(-1).unsqueeze(0).expand(3, -1) + 1


def _cat_stack_split(a, b):
    parts = torch.stack(a.split(1, 0)[:2]).expand(2, -1, -1)
    return torch.cat([torch.stack([a, b]), parts.repeat(1, 4, 1)[:, :4]], 1)


def _pad_roll_flip(x):
    reflected = F.pad(x[None], (1, 1), mode="reflect")
    return F.pad(x, (1, 2), value=3.0), reflected, x.roll(2, 0), x.flip(0)


def _writes_an_input(x, y):
    x.add_(y).mul_(2)
    return y + 1


def _writes_a_slice_of_an_input(x, y):
    x[1:3].copy_(y)
    return x * 2


VIEWS = [
    Case("chain_of_views", _chain_of_views, lambda: (randn(8, 6),), gradients=True),
    Case("cat_stack_split", _cat_stack_split, lambda: (randn(4, 5), randn(4, 5))),
    Case("pad_roll_flip", _pad_roll_flip, lambda: (randn(6, 7),), gradients=True),
    Case(
        "permuted",
        lambda x: (x.permute(0, 2, 3, 1) * 2).contiguous().sum(-1),
        lambda: (randn(2, 3, 8, 8),),
        gradients=True,
    ),
    Case("writes_an_input", _writes_an_input, lambda: (randn(6, 7), randn(6, 7)), writes_inputs=True),
    Case(
        "writes_a_slice_of_an_input",
        _writes_a_slice_of_an_input,
        lambda: (randn(6, 7), randn(2, 7)),
        writes_inputs=True,
    ),
    Case("returns_views_of_an_input", lambda x: (x[1:], x.t(), x * 1), lambda: (randn(6, 7),)),
    Case(
        "unfold_and_as_strided",
        lambda x: x.unfold(-1, 3, 1).sum(-1) + x.as_strided((4, 8), (10, 1)).sum(),
        lambda: (randn(4, 10),),
    ),
    Case(
        "diagonal_eye_trace",
        lambda x: torch.diagonal(x) + torch.eye(6, device=x.device).sum(0) + x.trace(),
        lambda: (randn(6, 6),),
        gradients=True,
    ),
]


def _products(a, b):
    return a @ b, torch.bmm(a[None], b[None]), torch.einsum("ij,jk->ki", a, b)


def _sums_with_products(c, a, b):
    return torch.addmm(c, a, b, beta=0.5, alpha=2) + torch.baddbmm(c[None], a[None], b[None])[0]


def _attention(query, key, value):
    return ((query @ key.transpose(-1, -2) / 8).softmax(-1)) @ value


def _heads():
    return randn(2, 3, 16, 8), randn(2, 3, 16, 8), randn(2, 3, 16, 8)


PRODUCTS = [
    Case(
        "linear_gelu",
        lambda x, w, b: F.gelu(F.linear(x, w, b)),
        lambda: (randn(9, 33), randn(17, 33), randn(17)),
        gradients=True,
    ),
    Case("products", _products, lambda: (randn(9, 33), randn(33, 5)), gradients=True, tolerance=1e-3),
    Case(
        "sums_with_products",
        _sums_with_products,
        lambda: (randn(9, 5), randn(9, 33), randn(33, 5)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case(
        "vectors",
        lambda a, v: (a @ v, torch.outer(v, v), v.dot(v)),
        lambda: (randn(9, 33), randn(33)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case("attention_of_products", _attention, _heads, gradients=True, tolerance=1e-3),
    Case(
        "attention_with_a_mask",
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        lambda: (*_heads(), randn(16, 16)),
        tolerance=1e-3,
    ),
    Case(
        "causal_attention",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        _heads,
        gradients=True,
        tolerance=1e-3,
    ),
]


def _convolution_channels_last(x, w):
    return F.conv2d(x.to(memory_format=torch.channels_last), w).relu() * 2


def _pools(x):
    return F.max_pool2d(x, 2).sum() + F.avg_pool2d(x, 3, 1).sum() + F.adaptive_avg_pool2d(x, 3).sum()


def _interpolated(x):
    nearest = F.interpolate(x, scale_factor=2, mode="nearest")
    return nearest.sum(1) + F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False).sum(1)


IMAGES = [
    Case(
        "conv_relu",
        lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(),
        lambda: (randn(2, 3, 9, 9), randn(8, 3, 3, 3), randn(8)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case(
        "conv_channels_last",
        _convolution_channels_last,
        lambda: (randn(2, 4, 9, 9), randn(8, 4, 3, 3)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case(
        "conv_groups_strides_dilation",
        lambda x, w: F.conv2d(x, w, stride=2, dilation=2, padding=2, groups=2),
        lambda: (randn(2, 4, 11, 11), randn(8, 2, 3, 3)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case(
        "conv1d_conv3d",
        lambda x, w, y, v: (F.conv1d(x, w), F.conv3d(y, v)),
        lambda: (randn(2, 3, 9), randn(4, 3, 3), randn(1, 2, 5, 5, 5), randn(3, 2, 3, 3, 3)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case(
        "conv_transpose",
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
        lambda: (randn(2, 4, 7, 7), randn(4, 3, 3, 3)),
        gradients=True,
        tolerance=1e-3,
    ),
    Case("pools", _pools, lambda: (randn(2, 3, 12, 12),), gradients=True, tolerance=1e-3),
    Case("interpolated", _interpolated, lambda: (randn(2, 3, 6, 6),), gradients=True, tolerance=1e-3),
    Case(
        "grid_sample",
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        lambda: (randn(2, 3, 6, 6), rand(2, 5, 5, 2) * 2 - 1),
        gradients=True,
        tolerance=1e-3,
    ),
]


def _inverse_and_eigenvalues(x):
    square = x @ x.t()
    return torch.linalg.inv(square + 9 * torch.eye(6, device=x.device)), torch.linalg.eigvalsh(square)


LEFT_TO_THE_DISPATCHER = [
    Case("linear_algebra", _inverse_and_eigenvalues, lambda: (randn(6, 6),), tolerance=1e-2),
    Case("fft", lambda x: torch.fft.rfft(x).abs(), lambda: (randn(6, 16),), tolerance=1e-3),
    Case("histc", lambda x: torch.histc(x, bins=5, min=-2, max=2) * 2, lambda: (randn(40),)),
]

SYMBOLIC_SIZES = [
    Case(
        "dynamic_product",
        lambda a, b: (a @ b).relu().sum(0),
        lambda: (randn(9, 33), randn(33, 5)),
        gradients=True,
        tolerance=1e-3,
        dynamic=True,
    ),
    Case(
        "dynamic_views",
        lambda x: x.view(-1)[: x.shape[0]] * x.shape[1] + x.mean(),
        lambda: (randn(9, 8),),
        dynamic=True,
    ),
]

CASES = [
    *POINTWISE,
    *REDUCTIONS,
    *INDEXING,
    *VIEWS,
    *PRODUCTS,
    *IMAGES,
    *LEFT_TO_THE_DISPATCHER,
    *SYMBOLIC_SIZES,
]
