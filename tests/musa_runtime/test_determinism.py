# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.use_deterministic_algorithms: each operator in torch's documented lists raises or repeats its result.

The lists are in the docstring of torch.use_deterministic_algorithms. An operator that raises on CUDA may be
deterministic here if `DETERMINISTIC` has the reason.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F

from tests.harness.policies import POLICIES, policy

pytestmark = pytest.mark.once

ALERT = "does not have a deterministic implementation"
ORDERED = "ported kernel without atomic additions; otherwise torch's CPU kernel, which adds in order"
ON_HOST = "the device kernels decline it, and torch's CPU kernel adds in order"


def x(*shape: int, grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, generator=generator).to("musa").requires_grad_(grad)


def index(*shape: int, high: int = 4) -> torch.Tensor:
    """Returns indices with repetitions."""
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(0)).to("musa")


def gradient(function: Callable[..., torch.Tensor], *shape: int) -> Callable[[], torch.Tensor]:
    """Returns a call that differentiates the function at a tensor of this shape."""

    def call() -> torch.Tensor:
        tensor = x(*shape, grad=True)
        output = function(tensor)
        output.backward(torch.linspace(0.1, 1.7, output.numel(), device="musa").reshape(output.shape))
        return tensor.grad

    return call


def interpolate(mode: str, dims: int) -> Callable[[], torch.Tensor]:
    shape = (2, 2) + (5,) * dims
    return gradient(lambda t: F.interpolate(t, scale_factor=1.7, mode=mode), *shape)


def max_unpool(dims: int) -> Callable[[], torch.Tensor]:
    pool, unpool = (getattr(F, f"max_{kind}{dims}d") for kind in ("pool", "unpool"))

    def call() -> torch.Tensor:
        pooled, places = pool(x(*(1, 2) + (4,) * dims), 2, return_indices=True)
        return unpool(pooled, places, 2)

    return call


def fractional_max_pool(dims: int) -> Callable[[], torch.Tensor]:
    pool = getattr(F, f"fractional_max_pool{dims}d")

    def at_half(tensor: torch.Tensor) -> torch.Tensor:
        return pool(tensor, 2, 3, _random_samples=torch.full((1, 2, dims), 0.5, device="musa"))

    return gradient(at_half, *(1, 2) + (6,) * dims)


def convolution(name: str, dims: int) -> Callable[[], torch.Tensor]:
    """Returns a call that computes the gradient of the filter."""
    return gradient(lambda t: getattr(F, name)(x(*(2, 3) + (6,) * dims), t), *(3, 3) + (2,) * dims)


def pad(mode: str, dims: int) -> Callable[[], torch.Tensor]:
    return gradient(lambda t: F.pad(t, (2, 2) * dims, mode), *(1, 2) + (5,) * dims)


def scatter_reduce(reduce: str) -> Callable[[], torch.Tensor]:
    return lambda: x(4).scatter_reduce(0, index(9), x(9), reduce=reduce)


def ctc() -> torch.Tensor:
    lengths = torch.tensor([6, 5]), torch.tensor([3, 2])
    targets = torch.tensor([[1, 1, 2], [3, 1, 0]], device="musa")
    return gradient(lambda t: F.ctc_loss(t.log_softmax(-1), targets, *lengths), 6, 2, 5)()


def embedding_bag(mode: str) -> Callable[[], torch.Tensor]:
    return gradient(lambda t: F.embedding_bag(index(3, 5), t, mode=mode), 4, 3)


def quantized_resize() -> torch.Tensor:
    return torch.quantize_per_tensor(x(4), 0.1, 0, torch.qint8).resize_(8)


GRID = torch.linspace(-1, 1, 50).reshape(1, 5, 5, 2)

# Calls of the operators that raise on CUDA, by the text of the list's entries.
RAISES: dict[str, dict[str, Callable[[], torch.Tensor]]] = {
    "AvgPool3d": {"avg_pool3d": gradient(lambda t: F.avg_pool3d(t, 3, 1), 1, 2, 5, 5, 5)},
    "AdaptiveAvgPool2d": {"adaptive_avg_pool2d": gradient(lambda t: F.adaptive_avg_pool2d(t, 3), 1, 2, 5, 5)},
    "AdaptiveAvgPool3d": {
        "adaptive_avg_pool3d": gradient(lambda t: F.adaptive_avg_pool3d(t, 3), 1, 2, 5, 5, 5)
    },
    "AdaptiveMaxPool2d": {"adaptive_max_pool2d": gradient(lambda t: F.adaptive_max_pool2d(t, 3), 1, 2, 5, 5)},
    "FractionalMaxPool2d": {"fractional_max_pool2d": fractional_max_pool(2)},
    "FractionalMaxPool3d": {"fractional_max_pool3d": fractional_max_pool(3)},
    "MaxUnpool1d": {"max_unpool1d": max_unpool(1)},
    "MaxUnpool2d": {"max_unpool2d": max_unpool(2)},
    "MaxUnpool3d": {"max_unpool3d": max_unpool(3)},
    "interpolate": {
        "interpolate linear": interpolate("linear", 1),
        "interpolate bilinear": interpolate("bilinear", 2),
        "interpolate bicubic": interpolate("bicubic", 2),
        "interpolate trilinear": interpolate("trilinear", 3),
    },
    "ReflectionPad1d": {"reflection_pad1d": pad("reflect", 1)},
    "ReflectionPad2d": {"reflection_pad2d": pad("reflect", 2)},
    "ReflectionPad3d": {"reflection_pad3d": pad("reflect", 3)},
    "NLLLoss": {
        "nll_loss": lambda: F.nll_loss(x(9, 4), index(9)),
        "nll_loss2d": lambda: F.nll_loss(x(2, 4, 3, 3), index(2, 3, 3)),
    },
    "CTCLoss": {"ctc_loss": ctc},
    "EmbeddingBag": {"embedding_bag max": embedding_bag("max")},
    "put_": {
        "put_ accumulate=False": lambda: x(4).put_(index(9), x(9)),
        "put_ accumulate=True": lambda: x(4).put_(index(9), x(9), accumulate=True),
    },
    "histc": {"histc": lambda: torch.histc(x(50), bins=5)},
    "bincount": {"bincount weights": lambda: torch.bincount(index(50), x(50).abs())},
    "median": {"median": lambda: torch.median(x(5, 7), 1).values},
    "grid_sample": {
        "grid_sample": gradient(lambda t: F.grid_sample(t, GRID.to("musa"), align_corners=False), 1, 2, 4, 4)
    },
    "cumsum": {"cumsum": lambda: torch.cumsum(x(50), 0)},
    "scatter_reduce": {"scatter_reduce prod": scatter_reduce("prod")},
    "resize_": {"resize_ quantized": quantized_resize},
}

# Calls of the operators that are deterministic with the setting.
REPEATS: dict[str, dict[str, Callable[[], torch.Tensor]]] = {
    **{f"Conv{dims}d": {f"conv{dims}d": convolution(f"conv{dims}d", dims)} for dims in (1, 2, 3)},
    **{
        f"ConvTranspose{dims}d": {f"conv_transpose{dims}d": convolution(f"conv_transpose{dims}d", dims)}
        for dims in (1, 2, 3)
    },
    **{f"ReplicationPad{dims}d": {f"replication_pad{dims}d": pad("replicate", dims)} for dims in (1, 2, 3)},
    "bmm": {"bmm": lambda: torch.bmm(x(2, 3, 4).to_sparse(), x(2, 4, 5))},
    "__getitem__": {"getitem": gradient(lambda t: t[[0, 1, 1, 0]], 4, 3)},
    "index_put": {
        "index_put": lambda: x(4, 3).index_put((index(9),), x(9, 3)),
        "index_put accumulate": lambda: x(4, 3).index_put((index(9),), x(9, 3), accumulate=True),
    },
    "put_": {},
    "scatter_add_": {"scatter_add": lambda: x(4).scatter_add(0, index(9), x(9))},
    "gather": {"gather": gradient(lambda t: t.gather(0, index(9)), 4)},
    "index_add": {"index_add": lambda: x(4, 3).index_add(0, index(9), x(9, 3))},
    "index_select": {"index_select": gradient(lambda t: t.index_select(0, index(9)), 4, 3)},
    "repeat_interleave": {"repeat_interleave": gradient(lambda t: t.repeat_interleave(3, 0), 4, 3)},
    "index_copy": {"index_copy": lambda: x(4, 3).index_copy(0, index(9), x(9, 3))},
    "scatter": {"scatter": lambda: x(4).scatter(0, index(9), x(9))},
    "scatter_reduce": {f"scatter_reduce {reduce}": scatter_reduce(reduce) for reduce in ("sum", "mean")},
    "MaxPool3d": {"max_pool3d": gradient(lambda t: F.max_pool3d(t, 3, 1), 1, 2, 5, 5, 5)},
}

# Operators of the first list that do not raise here.
DETERMINISTIC = {
    **dict.fromkeys(
        (
            "avg_pool3d",
            "adaptive_avg_pool2d",
            "adaptive_avg_pool3d",
            "adaptive_max_pool2d",
            "fractional_max_pool2d",
            "fractional_max_pool3d",
            "interpolate linear",
            "interpolate bilinear",
            "interpolate bicubic",
            "interpolate trilinear",
            "reflection_pad1d",
            "reflection_pad2d",
            "reflection_pad3d",
            "nll_loss",
            "nll_loss2d",
            "ctc_loss",
            "embedding_bag max",
            "median",
            "cumsum",
        ),
        ORDERED,
    ),
    **dict.fromkeys(("put_ accumulate=True", "bincount weights", "scatter_reduce prod"), ON_HOST),
    "histc": "counts are integers, whose sums have no order",
    "grid_sample": "only with torch's CPU kernel; the ported kernel raises",
}

CASES = {
    name: call for entries in (RAISES, REPEATS) for group in entries.values() for name, call in group.items()
}


@contextmanager
def deterministic(warn_only: bool = False) -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def documented(heading: str) -> list[str]:
    """Returns the entries of one of the docstring's lists, each on one line."""
    text = torch.use_deterministic_algorithms.__doc__
    section = text[text.index(heading) :].split("\n\n", 1)[1]
    entries = re.split(r"\n\s+\* ", "\n" + re.split(r"\n\n    (?! )", section)[0])[1:]
    return [" ".join(entry.split()) for entry in entries]


@pytest.mark.parametrize(
    ("heading", "table"),
    [("operations will act\n", REPEATS), ("nondeterministic operations will throw a", RAISES)],
    ids=["deterministic", "raising"],
)
def test_every_documented_operator_has_a_case(heading, table):
    entries = documented(heading)
    assert len(entries) > 10
    named = [re.search(r"`([\w.]+)`", entry).group(1).rpartition(".")[2] for entry in entries]
    assert set(named) == set(table)


@pytest.mark.parametrize("name", POLICIES)
def test_documented_operators_raise_or_repeat(musa, name):
    counts: Counter[str] = Counter()
    problems = []
    with policy(name), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        for case, call in CASES.items():
            with deterministic():
                try:
                    first, second = call(), call()
                except RuntimeError as error:
                    if ALERT not in str(error):
                        raise
                    counts["raise"] += 1
                    if any(case in group for group in REPEATS.values()):
                        problems.append(f"{case} raises, and is deterministic on CUDA")
                    continue
            counts["repeat"] += 1
            if any(case in group for group in RAISES.values()) and case not in DETERMINISTIC:
                problems.append(f"{case} neither raises nor has a reason")
            if not torch.equal(first.cpu().dequantize(), second.cpu().dequantize()):
                problems.append(f"{case} does not repeat")
    print(f"\n{name}: {len(CASES)} cases: {dict(counts)}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("case", ["put_ accumulate=False", "max_unpool2d"])
def test_an_alert_is_a_warning_with_warn_only(musa, case, name):
    with policy(name), deterministic(warn_only=True), pytest.warns(UserWarning, match=ALERT):
        CASES[case]()
    with policy(name), deterministic(), pytest.raises(RuntimeError, match=ALERT):
        CASES[case]()


# If an index is repeated, the last value is written, as in a loop over the index.
@pytest.mark.parametrize("name", POLICIES)
def test_repeated_indices_take_the_value_of_the_cpu(musa, name):
    places = torch.tensor([0, 1, 0, 1, 0])
    values = torch.arange(5.0)
    with deterministic():
        for call in (
            lambda t, i, v: t.index_put((i,), v),
            lambda t, i, v: t.index_copy(0, i, v),
            lambda t, i, v: t.scatter(0, i, v),
        ):
            with policy(name):
                result = call(torch.zeros(2, device="musa"), places.to("musa"), values.to("musa"))
            torch.testing.assert_close(result.cpu(), call(torch.zeros(2), places, values))


@pytest.mark.parametrize("name", POLICIES)
def test_uninitialized_memory_is_filled(musa, name):
    with policy(name), deterministic():
        assert torch.utils.deterministic.fill_uninitialized_memory
        for made in (
            torch.empty(64, device="musa"),
            torch.empty_strided((4, 4), (1, 4), device="musa"),
            torch.empty_like(torch.ones(64, device="musa")),
            torch.ones(2, device="musa").new_empty(64),
            torch.empty_permuted((4, 5), (1, 0), device="musa"),
            torch.ones(2, device="musa").resize_(64)[2:],
            torch.empty(64, device="musa", dtype=torch.complex64).real,
        ):
            assert made.isnan().all()
        assert torch.empty(8, device="musa", dtype=torch.int32).eq(torch.iinfo(torch.int32).max).all()
        assert torch.empty(8, device="musa", dtype=torch.bool).all()
        torch.utils.deterministic.fill_uninitialized_memory = False
        try:
            torch.full((64,), 7.0, device="musa")  # so that the next block does not contain NaN
            assert not torch.empty(64, device="musa").isnan().all()
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = True
