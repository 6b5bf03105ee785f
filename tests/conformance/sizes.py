# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators at sizes at which libraries choose another algorithm: many rows, long rows, large batches.

The yardstick is the CPU's result in float64. The cases need torch alone, so that a process without
torch_musa can compute them with torch.cuda: `python -m tests.conformance.sizes --help`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

Operands = Callable[[torch.Generator], list[torch.Tensor]]

# Rows and columns: long and thin, wide and short, and counts next to the limits of grids and blocks.
SHAPES = (
    (1_000, 1), (1_000, 7), (10_000_000, 1), (1_000_000, 3), (200_704, 96), (65_537, 33), (70_001, 10),
    (1, 10_000_000), (1, 4_097), (2, 1_000_003), (3, 10_000), (7, 65_537), (1_000, 10_000), (1_025, 257),
)  # fmt: skip
LAYOUTS = ("plain", "unaligned", "columns")
TOLERANCES = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
HALVES = (torch.float16, torch.bfloat16)
# The gradients of norms and convolutions read an operand that was rounded before.
TWICE_ROUNDED = {torch.float32: 1e-4, torch.float16: 3e-2, torch.bfloat16: 1e-1}


@dataclass(frozen=True)
class Case:
    """A call. Errors are relative to the largest magnitude of a result.

    Attributes:
        operands: makes float32 and integer operands on the CPU.
        op: returns a tensor or several.
        gradients: also compare the gradients of floating operands.
        tolerance: in float32; a case in another dtype has the larger of this and the dtype's own.
        layout: of the first operand: plain, unaligned, columns (transposed) or channels_last.
    """

    name: str
    operands: Operands
    op: Callable[..., Any]
    elements: int
    gradients: bool = False
    dtype: torch.dtype = torch.float32
    tolerance: float = TOLERANCES[torch.float32]
    layout: str = "plain"

    @property
    def allowed(self) -> float:
        return max(self.tolerance, TOLERANCES[self.dtype])


def placed(tensor: torch.Tensor, device: str, layout: str) -> torch.Tensor:
    """Returns a copy on the device in a layout."""
    tensor = tensor.to(device, copy=True)
    if layout == "unaligned":
        memory = torch.empty(tensor.numel() + 1, dtype=tensor.dtype, device=device)
        return memory[1:].view(tensor.shape).copy_(tensor)
    if layout == "columns":
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "channels_last":
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor


def results(
    case: Case, operands: Sequence[torch.Tensor], device: str, dtype: torch.dtype
) -> list[torch.Tensor]:
    """Returns the results of a case, and its gradients, with floating operands in `dtype`."""
    placed_operands = []
    for index, operand in enumerate(operands):
        floating = operand.is_floating_point()
        operand = placed(
            operand.to(dtype) if floating else operand, device, case.layout if index == 0 else "plain"
        )
        placed_operands.append(operand.requires_grad_(case.gradients and floating))
    found = case.op(*placed_operands)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    if case.gradients:
        outputs = [one for one in found if one.requires_grad]
        generator = torch.Generator().manual_seed(1)
        pulls = [
            torch.randn(one.shape, generator=generator).to(case.dtype).to(device, one.dtype)
            for one in outputs
        ]
        leaves = [one for one in placed_operands if one.requires_grad]
        gradients = torch.autograd.grad(outputs, leaves, pulls, allow_unused=True)
        found += [one for one in gradients if one is not None]
    return [one.detach() for one in found]


def operands_of(case: Case) -> list[torch.Tensor]:
    """Returns the operands, rounded to the case's dtype."""
    made = case.operands(torch.Generator().manual_seed(zlib.crc32(case.name.encode())))
    return [one.to(case.dtype).float() if one.is_floating_point() else one for one in made]


def reference(case: Case, operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return results(case, operands, "cpu", torch.float64)


def error_of(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Returns the largest difference, relative to the largest magnitude; infinity for another shape."""
    if actual.shape != expected.shape or actual.is_floating_point() != expected.is_floating_point():
        return float("inf")
    if not expected.numel():
        return 0.0
    if not expected.is_floating_point():
        return 0.0 if torch.equal(actual.cpu().to(expected.dtype), expected) else float("inf")
    actual = actual.cpu().double()
    difference = torch.where(actual == expected, 0, (actual - expected).abs())  # also equal infinities
    worst = float(difference.max())
    largest = float(torch.where(expected.isfinite(), expected.abs(), 0).max())
    return worst / max(largest, 1e-30) if worst == worst else float("inf")


def measure(case: Case, device: str) -> list[float]:
    """Returns the error of each result and gradient."""
    operands = operands_of(case)
    expected = reference(case, operands)
    actual = results(case, operands, device, case.dtype)
    return [error_of(one, other) for one, other in zip(actual, expected, strict=True)]


# ---- cases


def normal(*shape: int) -> Operands:
    return lambda g: [torch.randn(shape, generator=g)]


def normals(*shapes: tuple[int, ...]) -> Operands:
    return lambda g: [torch.randn(shape, generator=g) for shape in shapes]


def shuffled(*shape: int) -> Operands:
    """Distinct numbers, as far as float32 has them."""
    count = torch.Size(shape).numel()
    return lambda g: [(torch.randperm(count, generator=g).view(shape) - count // 2).float()]


def near_one(*shape: int) -> Operands:
    return lambda g: [1 + torch.randn(shape, generator=g) * 1e-3]


def picks(most: int, *shape: int) -> Callable[[torch.Generator], torch.Tensor]:
    """Indices, of which a tenth are 0."""
    return lambda g: torch.randint(0, most, shape, generator=g) * (torch.rand(shape, generator=g) > 0.1)


def argued(pick: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Returns the elements at the indices that `pick` returns, as equal elements have no order."""
    return lambda x, dim: (
        x.gather(dim, pick(x, dim).unsqueeze(dim)) if dim is not None else x.flatten()[pick(x)]
    )


def ordered(x: torch.Tensor, dim: int, **options: Any) -> list[torch.Tensor]:
    """Sorted values, the elements at the indices, and the sum of the indices: all of them."""
    values, places = torch.sort(x, dim=dim, **options)
    return [values, x.gather(dim, places), places.sum(dim)]


def both(found: tuple[torch.Tensor, torch.Tensor], x: torch.Tensor, dim: int) -> list[torch.Tensor]:
    values, places = found
    places = places if places.dim() == x.dim() else places.unsqueeze(dim)
    return [values, x.gather(dim, places)]


LOOSE = 3e-4  # long products, and sums of exponentials
REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Operands], float]] = {
    "sum": (lambda x, d: x.sum(d), normal, 2e-5),
    "mean": (lambda x, d: x.mean(d), normal, 2e-5),
    "nansum": (lambda x, d: x.nansum(d), normal, 2e-5),
    "amax": (lambda x, d: x.amax(() if d is None else d), shuffled, 0),
    "amin": (lambda x, d: x.amin(() if d is None else d), shuffled, 0),
    "argmax": (argued(torch.argmax), shuffled, 0),
    "argmin": (argued(torch.argmin), shuffled, 0),
    "max": (lambda x, d: x.max() if d is None else both(x.max(d), x, d), shuffled, 0),
    "median": (lambda x, d: x.median() if d is None else both(x.median(d), x, d), shuffled, 0),
    "var": (lambda x, d: x.var(d, correction=0), normal, 2e-5),
    "std": (lambda x, d: x.std(d, correction=0), normal, 2e-5),
    "var_mean": (lambda x, d: torch.var_mean(x, d, correction=0), normal, 2e-5),
    "norm_1": (lambda x, d: torch.linalg.vector_norm(x, 1, d), normal, 2e-5),
    "norm_2": (lambda x, d: torch.linalg.vector_norm(x, 2, d), normal, 2e-5),
    "norm_inf": (lambda x, d: torch.linalg.vector_norm(x, float("inf"), d), normal, 2e-5),
    "prod": (lambda x, d: x.prod() if d is None else x.prod(d), near_one, LOOSE),
    "any": (lambda x, d: (x > 4.5).any() if d is None else (x > 4.5).any(d), normal, 0),
    "all": (lambda x, d: (x < 4.5).all() if d is None else (x < 4.5).all(d), normal, 0),
    "count_nonzero": (lambda x, d: (x > 0).count_nonzero(d), normal, 0),
    "logsumexp": (lambda x, d: x.logsumexp((0, 1) if d is None else d), normal, 2e-5),
}
SCANS: dict[str, tuple[Callable[..., Any], Callable[..., Operands], float]] = {
    "cumsum": (lambda x, d: x.cumsum(d), normal, LOOSE),
    "cumprod": (lambda x, d: x.cumprod(d), near_one, LOOSE),
    "logcumsumexp": (lambda x, d: x.logcumsumexp(d), normal, LOOSE),
    "cummax": (lambda x, d: both(x.cummax(d), x, d), shuffled, 0),
    "cummin": (lambda x, d: both(x.cummin(d), x, d), shuffled, 0),
    "sort": (lambda x, d: ordered(x, d), shuffled, 0),
    "sort_stable": (lambda x, d: ordered(x, d, descending=True, stable=True), shuffled, 0),
    "topk": (lambda x, d: both(x.topk(min(5, x.shape[d]), d), x, d), shuffled, 0),
    "topk_half": (lambda x, d: both(x.topk((x.shape[d] + 1) // 2, d, largest=False), x, d), shuffled, 0),
    "kthvalue": (lambda x, d: both(x.kthvalue((x.shape[d] + 2) // 3, d), x, d), shuffled, 0),
    "flip": (lambda x, d: x.flip(d), normal, 0),
    "roll": (lambda x, d: x.roll(3, d), normal, 0),
    "cat": (lambda x, d: torch.cat([x, x[:1, :1].expand_as(x), x], d), normal, 0),
}


def by_dimension() -> Iterator[Case]:
    """Reductions, scans and sorts along each dimension of each shape."""
    for rows, columns in SHAPES:
        size = rows * columns
        for name, (op, make, tolerance) in REDUCTIONS.items():
            for dim in (0, 1, None):
                layout = LAYOUTS[(len(name) + rows + (dim or 0)) % 3]
                yield Case(
                    f"{name}-{rows}x{columns}-{'all' if dim is None else dim}-{layout}", make(rows, columns),
                    lambda x, op=op, dim=dim: op(x, dim), size, tolerance=tolerance, layout=layout,
                )  # fmt: skip
        for name, (op, make, tolerance) in SCANS.items():
            for dim in (0, 1):
                layout = LAYOUTS[(len(name) + rows + dim) % 3]
                yield Case(
                    f"{name}-{rows}x{columns}-{dim}-{layout}", make(rows, columns),
                    lambda x, op=op, dim=dim: op(x, dim), size, tolerance=tolerance, layout=layout,
                )  # fmt: skip
        for dtype in HALVES:
            for name in ("sum", "mean", "norm_2"):
                op = REDUCTIONS[name][0]
                for dim in (0, 1, None):
                    yield Case(
                        f"{name}-{rows}x{columns}-{'all' if dim is None else dim}-{str(dtype)[6:]}",
                        normal(rows, columns), lambda x, op=op, dim=dim: op(x, dim), size, dtype=dtype,
                    )  # fmt: skip


def classes(rows: int, columns: int) -> Operands:
    return lambda g: [torch.randn(rows, columns, generator=g), picks(columns, rows)(g)]


def with_columns(count: int) -> Callable[[int, int], Operands]:
    """The matrix and `count` vectors of a number per column."""
    return lambda rows, columns: normals((rows, columns), *[(columns,)] * count)


def with_weights(rows: int, columns: int) -> Operands:
    return lambda g: [*classes(rows, columns)(g), torch.rand(columns, generator=g) + 0.5]


def groups_of(columns: int) -> int:
    return next(number for number in (8, 3, 1) if columns % number == 0 and (columns > number or number == 1))


# Name, operation, operands. Gradients are compared too.
ROWS: tuple[tuple[str, Callable[..., Any], Callable[[int, int], Operands]], ...] = (
    ("softmax_0", lambda x: x.softmax(0), normal),
    ("softmax_1", lambda x: x.softmax(1), normal),
    ("log_softmax_0", lambda x: x.log_softmax(0), normal),
    ("log_softmax_1", lambda x: x.log_softmax(1), normal),
    ("layer_norm", lambda x, w, b: F.layer_norm(x, w.shape, w, b), with_columns(2)),
    ("layer_norm_bare", lambda x: F.layer_norm(x, x.shape[1:]), normal),
    ("rms_norm", lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), with_columns(1)),
    ("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), with_columns(2)),
    ("batch_norm_planes", lambda x, w, b: F.batch_norm(x.T[None], None, None, b[:1].expand(x.shape[1]),
                                                       w, training=True), with_columns(2)),
    ("batch_norm_eval", lambda x, w, b: F.batch_norm(x, w.detach(), b.detach() ** 2, w, b), with_columns(2)),
    ("group_norm", lambda x, w, b: F.group_norm(x, groups_of(x.shape[1]), w, b), with_columns(2)),
    ("group_norm_planes", lambda x, w, b: F.group_norm(x.T[None], groups_of(len(w)), w, b), with_columns(2)),
    ("instance_norm", lambda x: F.instance_norm(x[None]), normal),
    ("cross_entropy", F.cross_entropy, classes),
    ("cross_entropy_sum", lambda x, t: F.cross_entropy(x, t, reduction="sum", label_smoothing=0.1), classes),
    ("cross_entropy_weighted", lambda x, t, w: F.cross_entropy(x, t, w.detach(), None, 0), with_weights),
    ("add_row", lambda x, b: x + b, with_columns(1)),
    ("mul_row", lambda x, b: x * b, with_columns(1)),
    ("mul_column", lambda x, b: x * b[:, None], lambda rows, columns: normals((rows, columns), (rows,))),
    ("prelu", lambda x, w: F.prelu(x, w), with_columns(1)),
    ("mse", lambda x, b: F.mse_loss(x, b.expand_as(x)), with_columns(1)),
    ("linear", lambda x, w, b: F.linear(x, w[None] * b[:5, None].sum(), None), with_columns(2)),
    ("matvec", lambda x, b: x @ b, with_columns(1)),
    ("gram", lambda x: (x[:, :7].T @ x[:, :7]), normal),
    ("glu", lambda x: F.glu(torch.stack([x, x.flip(0)]), 0), normal),
)  # fmt: skip
IN_HALF = ("softmax_1", "log_softmax_1", "layer_norm", "rms_norm", "batch_norm", "group_norm",
           "cross_entropy", "add_row", "linear")  # fmt: skip


def by_rows() -> Iterator[Case]:
    """Norms, softmax, losses, products and broadcasts of matrices, with gradients."""
    for rows, columns in SHAPES:
        for number, (name, op, make) in enumerate(ROWS):
            if "norm" in name and (rows if name.startswith("batch_norm") else columns) == 1:
                continue  # the variance of one number
            if name == "cross_entropy_weighted" and columns == 1:
                continue  # every target is ignored
            layout = LAYOUTS[(number + rows) % 3]
            yield Case(
                f"{name}-{rows}x{columns}-{layout}", make(rows, columns), op, rows * columns, gradients=True,
                tolerance=1e-4, layout=layout,
            )  # fmt: skip
            # The smallest gradients of a mean over many rows, and the variance of few, have no 16-bit number.
            if (
                name in IN_HALF
                and not (name == "cross_entropy" and rows > 10_000)
                and not (name == "batch_norm" and rows < 10)
            ):
                for dtype in HALVES:
                    yield Case(
                        f"{name}-{rows}x{columns}-{str(dtype)[6:]}", make(rows, columns), op, rows * columns,
                        gradients=True, dtype=dtype, tolerance=TWICE_ROUNDED[dtype],
                    )  # fmt: skip


def indexed(count: int, most: int, width: int) -> Operands:
    """A table, indices into it, and as many rows."""
    return lambda g: [
        torch.randn(most, width, generator=g), picks(most, count)(g), torch.randn(count, width, generator=g)
    ]  # fmt: skip


def bag_of(x: torch.Tensor, i: torch.Tensor, mode: str) -> torch.Tensor:
    return F.embedding_bag(i, x, torch.arange(0, len(i), 5, device=i.device), mode=mode)


def spread(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return i[:, None].expand_as(x)


INDEXED: dict[str, Callable[..., Any]] = {
    "embedding": lambda x, i, r: F.embedding(i, x),
    "embedding_padding": lambda x, i, r: F.embedding(i, x, padding_idx=0),
    "embedding_by_frequency": lambda x, i, r: F.embedding(i, x, scale_grad_by_freq=True),
    "embedding_bag_sum": lambda x, i, r: bag_of(x, i, "sum"),
    "embedding_bag_mean": lambda x, i, r: bag_of(x, i, "mean"),
    "embedding_bag_max": lambda x, i, r: bag_of(x, i, "max"),
    "index_select": lambda x, i, r: x.index_select(0, i),
    "index": lambda x, i, r: x[i],
    "gather": lambda x, i, r: x.gather(0, spread(i, r)),
    "index_add": lambda x, i, r: x.index_add(0, i, r),
    "scatter_add": lambda x, i, r: x.scatter_add(0, spread(i, r), r),
    "scatter_amax": lambda x, i, r: x.detach().scatter_reduce(0, spread(i, r), r.detach(), "amax") + 0 * x,
    "index_put": lambda x, i, r: x.index_put((i,), r, accumulate=True),
}
COUNTED: dict[str, Callable[..., Any]] = {
    "bincount": lambda i, w: torch.bincount(i, minlength=11),
    "bincount_weights": lambda i, w: torch.bincount(i, w),
    "histc": lambda i, w: torch.histc(w, 64, -3, 3),
    "unique": lambda i, w: torch.unique(i, return_inverse=True, return_counts=True),
    "unique_consecutive": lambda i, w: torch.unique_consecutive(i.sort().values, return_counts=True),
    "nonzero": lambda i, w: (w > 1).nonzero(),
    "masked_select": lambda i, w: w.masked_select(w > 0),
    "searchsorted": lambda i, w: torch.searchsorted(torch.arange(-3.0, 3, 1e-3, device=w.device), w.float()),
    "dot": lambda i, w: w @ w.flip(0),
}


def by_index() -> Iterator[Case]:
    """Embeddings, scatters and counts, with few and with many targets."""
    for count, most, width in (
        (1_000, 10, 3), (70_000, 10, 1), (70_000, 65_537, 2), (1_000_000, 3, 4), (1_000_000, 50_000, 4),
        (3_000, 7, 1_000), (200_000, 100, 64), (500, 200_000, 3),
    ):  # fmt: skip
        for name, op in INDEXED.items():
            yield Case(
                f"{name}-{count}of{most}x{width}", indexed(count, most, width), op, max(count, most) * width,
                gradients=True, tolerance=1e-4,
            )  # fmt: skip
    for count in (1_000, 65_537, 1_000_003, 10_000_000):
        for most in (10, 100_000):
            for name, op in COUNTED.items():
                yield Case(
                    f"{name}-{count}of{most}",
                    lambda g, n=count, m=most: [picks(m, n)(g), torch.randn(n, generator=g).half().float()],
                    op, count, tolerance=1e-4,
                )  # fmt: skip


# Name, function, shapes of input and weight, options.
CONVOLUTIONS: tuple[tuple[str, Callable[..., Any], tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("conv1d", F.conv1d, (70_001, 2, 8), (3, 2, 3), {"padding": 1}),
    ("conv1d_point", F.conv1d, (3_001, 3, 150), (4, 3, 1), {}),
    ("conv1d_long", F.conv1d, (1, 2, 1_000_003), (3, 2, 5), {"stride": 2}),
    ("conv2d", F.conv2d, (1_000, 4, 9, 9), (5, 4, 3, 3), {"padding": 1}),
    ("conv2d_many", F.conv2d, (70_001, 2, 4, 4), (3, 2, 3, 3), {"padding": 1}),
    ("conv2d_point", F.conv2d, (70_001, 3, 4, 4), (4, 3, 1, 1), {}),
    ("conv2d_point_plane", F.conv2d, (2_001, 3, 12, 12), (4, 3, 1, 1), {}),
    ("conv2d_point_many_planes", F.conv2d, (70_001, 2, 12, 12), (2, 2, 1, 1), {}),
    ("conv2d_plane", F.conv2d, (1, 3, 1_025, 1_023), (4, 3, 3, 3), {"stride": 2, "dilation": 2}),
    ("conv2d_channels", F.conv2d, (2, 1_025, 7, 7), (257, 1_025, 1, 1), {}),
    ("conv2d_depthwise", F.conv2d, (64, 96, 28, 28), (96, 1, 7, 7), {"padding": 3, "groups": 96}),
    ("conv2d_depthwise_many", F.conv2d, (65_537, 2, 5, 5), (2, 1, 3, 3), {"groups": 2}),
    ("conv3d", F.conv3d, (2_001, 2, 3, 5, 5), (3, 2, 3, 3, 3), {"padding": 1}),
    ("conv_transpose2d", F.conv_transpose2d, (5_001, 3, 5, 5), (3, 2, 3, 3), {"stride": 2}),
)
PLANES: dict[str, Callable[..., Any]] = {
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "upsample_nearest": lambda x: F.interpolate(x, scale_factor=2),
    "upsample_bilinear": lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "reflection_pad": lambda x: F.pad(x, (1, 1, 1, 1), "reflect"),
    "replication_pad": lambda x: F.pad(x, (1, 1, 1, 1), "replicate"),
    "unfold": lambda x: F.unfold(x, 2),
    "batch_norm2d": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm2d": lambda x: F.group_norm(x, 2),
    "instance_norm2d": lambda x: F.instance_norm(x),
    "softmax2d": lambda x: x.softmax(1),
    "mean2d": lambda x: x.mean((2, 3)),
    "sum_but_channels": lambda x: x.sum((0, 2, 3)),
    "local_response_norm": lambda x: F.local_response_norm(x, 2),
    "pixel_shuffle": lambda x: F.pixel_unshuffle(x[..., :4, :4], 2),
    "transposed": lambda x: x.transpose(1, 3).contiguous(),
}
PRODUCTS: tuple[tuple[str, Callable[..., Any], Operands, int], ...] = (
    ("bmm", torch.bmm, normals((70_001, 3, 4), (70_001, 4, 5)), 1_400_000),
    ("bmm_long", torch.bmm, normals((3, 2, 100_003), (3, 100_003, 4)), 1_200_000),
    ("mm_long", torch.mm, normals((5, 1_000_003), (1_000_003, 2)), 5_000_000),
    ("baddbmm", torch.baddbmm, normals((65_537, 2, 2), (65_537, 2, 3), (65_537, 3, 2)), 400_000),
    ("einsum", lambda a, b: torch.einsum("nij,nkj->ik", a, b),
     normals((30_001, 3, 9), (30_001, 2, 9)), 810_000),
    ("linear_rows", F.linear, normals((200_704, 24), (8, 24), (8,)), 4_800_000),
    ("attention_many", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
     normals((70_001, 1, 3, 4), (70_001, 1, 3, 4), (70_001, 1, 3, 4)), 840_000),
    ("attention_long", lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
     normals((1, 2, 1_025, 16), (1, 2, 2_049, 16), (1, 2, 2_049, 16)), 4_200_000),
    ("cdist", torch.cdist, normals((2, 1_025, 3), (2, 513, 3)), 1_000_000),
    ("cosine", F.cosine_similarity, normals((70_001, 9), (70_001, 9)), 630_000),
)  # fmt: skip


def by_batch() -> Iterator[Case]:
    """Convolutions, pools, resampling and products of large batches and planes, with gradients."""
    for name, op, shape, weight, options in CONVOLUTIONS:
        outputs = weight[1] if "transpose" in name else weight[0]
        elements = torch.Size(shape).numel()
        for layout in ("plain", "channels_last") if len(shape) == 4 else ("plain",):
            for dtype in (torch.float32, *HALVES):
                yield Case(
                    f"{name}-{layout}-{str(dtype)[6:]}", normals(shape, weight, (outputs,)),
                    lambda x, w, b, op=op, options=options: op(x, w, b, **options), elements, gradients=True,
                    dtype=dtype, tolerance=TWICE_ROUNDED[dtype], layout=layout,
                )  # fmt: skip
    for shape in ((70_001, 2, 4, 4), (1, 65_538, 4, 6), (2, 4, 513, 517), (200, 96, 14, 14)):
        for name, op in PLANES.items():
            for layout in ("plain", "channels_last"):
                size = "x".join(map(str, shape))
                yield Case(
                    f"{name}-{size}-{layout}", normal(*shape), op, torch.Size(shape).numel(), gradients=True,
                    tolerance=1e-4, layout=layout,
                )  # fmt: skip
    for name, op, make, elements in PRODUCTS:
        yield Case(name, make, op, elements, gradients=True, tolerance=1e-4)
        if name != "cdist":  # has no 16-bit types
            yield Case(f"{name}-bfloat16", make, op, elements, gradients=True, dtype=torch.bfloat16)


def cases(most: int = 25_000_000) -> list[Case]:
    """Returns the cases of up to `most` elements."""
    every = (by_dimension(), by_rows(), by_index(), by_batch())
    return [case for some in every for case in some if case.elements <= most]


# ---- on a GPU


def in_turn(most: int) -> list[Case]:
    """Returns the cases in an order of which every beginning is a sample, after those of layer norm."""
    return sorted(
        cases(most), key=lambda case: (not case.name.startswith("layer_norm"), zlib.crc32(case.name.encode()))
    )


def measured(case: Case, device: str) -> list[float] | str:
    """Returns the errors of a case, or the exception's text."""
    try:
        return measure(case, device)
    except Exception as error:  # noqa: BLE001 - a refusal is a finding
        return f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"


def worst(found: Any) -> float:
    return max(found, default=0.0) if isinstance(found, list) else float("inf")


def beside(devices: Sequence[str], jobs: int, most: int, limit: float) -> dict[str, Any]:
    """Measures each device in its own processes, which run at the same time.

    Returns:
        The rows of all cases by name, the names of those of which a device other than torch.cuda is above
        the tolerance while torch.cuda is not, and messages of processes that failed.
    """
    running = []
    for part in range(1, jobs + 1):
        for device in devices:
            env = {**os.environ, "OMP_NUM_THREADS": "1"}
            env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1" if device == "musa" else "0"
            command = [sys.executable, "-m", "tests.conformance.sizes", "--device", device]
            command += [f"--part={part}/{jobs}", f"--most={most}"]
            running.append((device, subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)))
    rows: dict[str, Any] = {case.name: {"allowed": case.allowed} for case in cases(most)}
    failed, end = [], time.monotonic() + limit
    for device, process in running:
        try:
            output, _ = process.communicate(timeout=max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        if process.returncode not in (0, -9):
            failed.append(f"a process of {device} ended with status {process.returncode}")
        for line in output.splitlines():
            if line.startswith("{"):
                for name, errors in json.loads(line).items():
                    rows[name][device] = errors
    off = []
    for name, row in rows.items():
        others = [worst(row[device]) for device in devices if device != "cuda" and device in row]
        if others and max(others) > row["allowed"] and worst(row.get("cuda", [])) <= row["allowed"]:
            off.append(name)
    return {"wrong": off, "failed": failed, "rows": rows}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.conformance.sizes", description=__doc__)
    parser.add_argument("--device", action="append", help="cpu, musa or cuda; several are compared")
    parser.add_argument("--part", default="1/1", help="I/N: every N-th case, from the I-th")
    parser.add_argument("--most", type=int, default=25_000_000, help="elements of the largest operand")
    parser.add_argument("--jobs", type=int, default=8, help="processes of each device")
    parser.add_argument("--limit", type=float, default=420, help="seconds after which processes are ended")
    parser.add_argument("--out", type=Path, help="write the rows of all devices to this file")
    options = parser.parse_args(arguments)
    devices = options.device or ["musa", "cuda"]
    if options.out is None:
        part, _, parts = options.part.partition("/")
        for case in in_turn(options.most)[int(part) - 1 :: int(parts)]:  # a line each, should it end early
            found = {case.name: measured(case, devices[0])}
            print(json.dumps(found).replace("Infinity", "1e999"), flush=True)
        return 0
    result = beside(devices, options.jobs, options.most, options.limit)
    options.out.write_text(json.dumps(result, indent=0).replace("Infinity", "1e999") + "\n")
    done = sum(all(device in row for device in devices) for row in result["rows"].values())
    print(f"{done} of {len(result['rows'])} cases on {', '.join(devices)}; {len(result['wrong'])} wrong")
    for text in result["failed"]:
        print(text)
    for name in result["wrong"][:40]:
        print(name, result["rows"][name])
    return int(bool(result["wrong"] or result["failed"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
