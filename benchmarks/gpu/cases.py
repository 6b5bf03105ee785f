# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The cases: name, kind, and a function that takes the device and returns the call to measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

N = 100_000_000
Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A row of the report.

    Attributes:
        name (str): description with the shape.
        kind (str): "host" times the call on the host, "device" its work on the GPU.
        make: returns the call for a device's name.
        bytes (int): minimum GPU memory traffic of the call; 0 if that does not limit it.
        bar (float): the maximum ratio to torch.cuda.
    """

    name: str
    kind: str
    make: Callable[[str], Call]
    bytes: int = 0
    bar: float = 1.2


def normal(device: str, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=device)


def integers(device: str, most: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, most, shape).to(device)


def of(
    function: Callable[..., object],
    *shapes: tuple[int, ...],
    dtype: torch.dtype | None = None,
    out: bool = False,
):
    """Returns a call of `function` on random normal tensors; with `out` the last is the output."""

    def make(device: str) -> Call:
        tensors = [normal(device, *shape).to(dtype) if dtype else normal(device, *shape) for shape in shapes]
        if out:
            target = tensors.pop()
            return lambda: function(*tensors, out=target)
        return lambda: function(*tensors)

    return make


def _optimizer(count: int, size: int, **options: bool) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        parameters = [normal(device, size).requires_grad_() for _ in range(count)]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        return torch.optim.Adam(parameters, 1e-3, **options).step

    return make


def _to_device(pinned: bool) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        source, target = torch.randn(1 << 26), normal(device, 1 << 26)
        source = source.pin_memory() if pinned else source
        return lambda: target.copy_(source, non_blocking=True)

    return make


def _to_host(device: str) -> Call:
    source, target = normal(device, 1 << 26), torch.empty(1 << 26, pin_memory=True)
    return lambda: target.copy_(source, non_blocking=True)


def _chain(device: str) -> Call:
    x = normal(device, 256, 256)

    def step() -> torch.Tensor:
        y = x
        for _ in range(50):
            y = (y * 1.01 + 0.1).relu()
        return y

    return step


def _graph(device: str) -> Call:
    module = getattr(torch, device)
    graph = module.CUDAGraph() if device == "cuda" else module.MUSAGraph()
    step = _chain(device)
    with module.stream(module.Stream()):
        step()
    module.synchronize()
    with module.graph(graph):
        kept = step()

    def replay(kept: torch.Tensor = kept) -> None:
        graph.replay()

    return replay


def _indexed(select: bool) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        table, index = normal(device, 1_000_000, 64), integers(device, 1_000_000, 1_000_000)
        return (lambda: table.index_select(0, index)) if select else (lambda: table[index])

    return make


def _index_add(device: str) -> Call:
    table, index, source = (
        normal(device, 100_000, 64),
        integers(device, 100_000, 1_000_000),
        normal(device, 1_000_000, 64),
    )
    return lambda: table.index_add_(0, index, source)


def _batch_norm(device: str) -> Call:
    x, *rest = (
        normal(device, 64, 256, 56, 56),
        *(normal(device, 256) for _ in range(3)),
        normal(device, 256).abs(),
    )
    weight, bias, mean, variance = rest
    return lambda: functional.batch_norm(x, mean, variance, weight, bias, True)


def _with_tf32(device: str, allow: bool, call: Call) -> Call:
    """Wraps a call to run float32 products with or without TF32, in all libraries."""

    def timed() -> object:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allow
        if device == "musa" and hasattr(torch.backends, "mudnn"):
            torch.backends.mudnn.allow_tf32 = allow
        return call()

    return timed


def _product(dtype: torch.dtype, tf32: bool = False) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        a, b = (normal(device, 4096, 4096).to(dtype) for _ in range(2))
        return _with_tf32(device, tf32, lambda: a @ b)

    return make


def _convolution(dtype: torch.dtype, memory_format: torch.memory_format) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        torch.backends.cudnn.benchmark = True
        x = normal(device, 64, 256, 56, 56).to(dtype).contiguous(memory_format=memory_format)
        weight = normal(device, 256, 256, 3, 3).to(dtype).contiguous(memory_format=memory_format)
        return _with_tf32(device, False, lambda: functional.conv2d(x, weight, padding=1))

    return make


def _event(device: str) -> Call:
    event = getattr(torch, device).Event()
    return event.record


HOST = [
    Case("a + b, 16", "host", of(torch.add, (16,), (16,)), bar=1.0),
    Case("add out=, 16", "host", of(torch.add, (16,), (16,), (16,), out=True), bar=1.0),
    Case("add_, 16", "host", of(lambda a, b: a.add_(b), (16,), (16,)), bar=1.0),
    Case("empty(1024)", "host", lambda device: lambda: torch.empty(1024, device=device), bar=1.0),
    Case("t()", "host", of(lambda a: a.t(), (16, 16)), bar=1.0),
    Case("a[0]", "host", of(lambda a: a[0], (16, 16)), bar=1.0),
    Case("sum, 1024", "host", of(torch.sum, (1024,)), bar=1.0),
    Case("item()", "host", of(lambda a: a.item(), (1,)), bar=1.0),
    Case("synchronize()", "host", lambda device: getattr(torch, device).synchronize, bar=1.0),
    Case("event.record()", "host", _event, bar=1.0),
    Case("Adam foreach, 300 of 256", "host", _optimizer(300, 256, foreach=True)),
    Case("graph replay of 150 operators", "host", _graph, bar=1.0),
]
DEVICE = [
    Case("matmul 4096^3 float32", "device", _product(torch.float32), bar=1.05),
    Case("matmul 4096^3 tf32", "device", _product(torch.float32, tf32=True), bar=1.05),
    Case("matmul 4096^3 bfloat16", "device", _product(torch.bfloat16), bar=1.05),
    Case(
        "conv 3x3 (64,256,56,56) bf16 channels_last",
        "device",
        _convolution(torch.bfloat16, torch.channels_last),
        bar=1.05,
    ),
    Case(
        "conv 3x3 (64,256,56,56) float32",
        "device",
        _convolution(torch.float32, torch.contiguous_format),
        bar=1.05,
    ),
    Case("a + b, 1e8 float32", "device", of(torch.add, (N,), (N,), (N,), out=True), 12 * N, 1.03),
    Case(
        "a + b, 1e8 bfloat16",
        "device",
        of(torch.add, (N,), (N,), (N,), dtype=torch.bfloat16, out=True),
        6 * N,
        1.03,
    ),
    Case(
        "broadcast add, 1e4 x 1e4",
        "device",
        of(torch.add, (10000, 10000), (10000, 1), (10000, 10000), out=True),
        8 * N,
        1.03,
    ),
    Case(
        "transposed copy, 1e4 x 1e4",
        "device",
        of(lambda a, b: b.copy_(a.t()), (10000, 10000), (10000, 10000)),
        8 * N,
        1.03,
    ),
    Case("exp, 1e8", "device", of(torch.exp, (N,), (N,), out=True), 8 * N, 1.03),
    Case("gelu, 1e8", "device", of(functional.gelu, (N,)), 8 * N, 1.03),
    Case("float32 to bfloat16, 1e8", "device", of(lambda a: a.bfloat16(), (N,)), 6 * N, 1.03),
    Case("copy on the device, 4e8 bytes", "device", of(lambda a, b: b.copy_(a), (N,), (N,)), 8 * N, 1.03),
    Case("fill_, 1e8", "device", of(lambda a: a.fill_(1.5), (N,)), 4 * N, 1.03),
    Case("sum, 1e8", "device", of(torch.sum, (N,)), 4 * N),
    Case("max, 1e8", "device", of(torch.max, (N,)), 4 * N),
    Case("sum(1), 1e4 x 1e4", "device", of(lambda a: a.sum(1), (10000, 10000)), 4 * N),
    Case("sum(0), 1e4 x 1e4", "device", of(lambda a: a.sum(0), (10000, 10000)), 4 * N),
    Case("cumsum(1), 1e4 x 1e4", "device", of(lambda a: a.cumsum(1), (10000, 10000)), 8 * N),
    Case("softmax(1), 32768 x 2048", "device", of(lambda a: a.softmax(1), (32768, 2048)), 8 * 32768 * 2048),
    Case(
        "layer_norm, 32768 x 2048",
        "device",
        of(lambda a: functional.layer_norm(a, (2048,)), (32768, 2048)),
        8 * 32768 * 2048,
    ),
    Case("batch_norm of training, (64, 256, 56, 56)", "device", _batch_norm, 12 * 64 * 256 * 56 * 56),
    Case("sort, 1e7", "device", of(torch.sort, (10_000_000,)), bar=1.5),
    Case("sort(1), 1e4 x 1e3", "device", of(lambda a: a.sort(1), (10000, 1000)), bar=1.5),
    Case("topk(50), 1e3 x 5e4", "device", of(lambda a: a.topk(50), (1000, 50000)), bar=1.5),
    Case(
        "nonzero, 1e7",
        "device",
        lambda device: (lambda a: lambda: a.nonzero())(normal(device, 10_000_000) > 0),
        bar=1.5,
    ),
    Case(
        "unique, 1e6",
        "device",
        lambda device: (lambda a: lambda: a.unique())(integers(device, 100_000, 1_000_000)),
        bar=1.5,
    ),
    Case("index_select, (1e6, 64)[1e6]", "device", _indexed(True), 8 * 64_000_000),
    Case("a[i], (1e6, 64)[1e6]", "device", _indexed(False), 8 * 64_000_000),
    Case("index_add_, (1e5, 64) of 1e6", "device", _index_add),
    Case(
        "max_pool2d(3, 2, 1), (64, 64, 112, 112)",
        "device",
        of(lambda a: functional.max_pool2d(a, 3, 2, 1), (64, 64, 112, 112)),
    ),
    Case(
        "bilinear x 2, (32, 64, 64, 64)",
        "device",
        of(lambda a: functional.interpolate(a, scale_factor=2, mode="bilinear"), (32, 64, 64, 64)),
    ),
    Case("uniform_, 1e8", "device", of(lambda a: a.uniform_(), (N,)), 4 * N),
    Case("normal_, 1e8", "device", of(lambda a: a.normal_(), (N,)), 4 * N),
    Case("dropout, 1e8", "device", of(lambda a: functional.dropout(a, 0.1), (N,)), 9 * N),
    Case("Adam foreach, 100 of 1e6", "device", _optimizer(100, 1_000_000, foreach=True)),
    Case("Adam fused, 100 of 1e6", "device", _optimizer(100, 1_000_000, fused=True), 28 * N),
    Case("150 operators, eager", "device", _chain),
    Case("150 operators, replayed", "device", _graph),
    Case("to the device, pinned, 268 MB", "device", _to_device(True), 0, 1.03),
    Case("to the device, pageable, 268 MB", "device", _to_device(False), 0, 1.03),
    Case("to the host, pinned, 268 MB", "device", _to_host, 0, 1.03),
]


def matrices(
    function: Callable[[torch.Tensor], object], *shape: int, positive: bool = False
) -> Callable[[str], Call]:
    """Returns a call of `function` on random matrices; with `positive`, on products with their transposes."""

    def make(device: str) -> Call:
        matrices = normal(device, *shape)
        if positive:
            identity = torch.eye(shape[-1], device=device)
            matrices = matrices @ matrices.mT / shape[-1] + identity
        return lambda: function(matrices)

    return make


def solve(size: int, columns: int, *batch: int) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        a, b = normal(device, *batch, size, size), normal(device, *batch, size, columns)
        return lambda: torch.linalg.solve(a, b)

    return make


def sparse(layout: torch.layout, rows: int = 100_000, each: int = 20) -> Callable[[str], torch.Tensor]:
    """Returns a function that makes a square matrix of about `each` elements in a row."""

    def make(device: str) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        places = torch.randint(0, rows, (2, rows * each), generator=generator)
        matrix = torch.sparse_coo_tensor(places, torch.ones(rows * each), (rows, rows)).coalesce()
        return matrix.to_sparse(layout=layout).to(device)

    return make


def sparse_product(layout: torch.layout, columns: int) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        matrix, dense = sparse(layout)(device), normal(device, 100_000, columns)
        return lambda: matrix @ dense

    return make


def sampled_product(device: str) -> Call:
    matrix = sparse(torch.sparse_csr)(device)
    left, right = normal(device, 100_000, 64), normal(device, 64, 100_000)
    return lambda: torch.sparse.sampled_addmm(matrix, left, right)


def scaled_product(device: str) -> Call:
    """A product of DeepSeek's linear layers: scales of 1 x 128 inputs and of 128 x 128 weights."""
    size, tile = 4096, 128
    inputs, weight = (normal(device, size, size).to(torch.float8_e4m3fn) for _ in range(2))
    of_inputs = torch.rand(size // tile, size).to(device).t()
    of_weight = torch.rand(size // tile, size // tile).to(device).t()
    row, block = functional.ScalingType.BlockWise1x128, functional.ScalingType.BlockWise128x128
    return lambda: functional.scaled_mm(inputs, weight.t(), of_inputs, row, of_weight, block)


def square_product(dtype: torch.dtype, size: int = 2048) -> Callable[[str], Call]:
    return of(torch.mm, (size, size), (size, size), dtype=dtype)


LENGTHS = [128 + 31 * index % 900 for index in range(64)]


def jagged(device: str, lengths: Sequence[int] = LENGTHS, heads: int = 16, width: int = 64) -> torch.Tensor:
    """Returns float16 sequences (batch, heads, length, width), made on the host."""
    parts = [torch.randn(length, heads, width).half().to(device) for length in lengths]
    return torch.nested.nested_tensor(parts, layout=torch.jagged, device=device).transpose(1, 2)


def jagged_attention(device: str) -> Call:
    q = jagged(device)
    return lambda: functional.scaled_dot_product_attention(q, q, q)


# torch.linalg raises an error for a matrix that it cannot decompose, so most of these wait for the device.
MATHEMATICS = [
    Case("fft, 16384 x 1024", "device", of(lambda a: torch.fft.fft(a), (16384, 1024)), bar=1.1),
    Case("rfft2, 64 x 1024 x 1024", "device", of(torch.fft.rfft2, (64, 1024, 1024)), bar=1.1),
    Case("fftn, 256 x 256 x 256", "device", of(torch.fft.fftn, (256, 256, 256)), bar=1.1),
    Case("svd, 1000 of 16 x 16", "device", matrices(torch.linalg.svd, 1000, 16, 16), bar=1.1),
    Case("svd, 512 x 512", "device", matrices(torch.linalg.svd, 512, 512), bar=1.1),
    Case("qr, 1000 of 16 x 16", "device", matrices(torch.linalg.qr, 1000, 16, 16), bar=1.1),
    Case("qr, 512 x 512", "device", matrices(torch.linalg.qr, 512, 512), bar=1.1),
    Case("qr, 4096 x 4096", "device", matrices(torch.linalg.qr, 4096, 4096), bar=1.1),
    Case(
        "eigh, 1000 of 16 x 16", "device", matrices(torch.linalg.eigh, 1000, 16, 16, positive=True), bar=1.1
    ),
    Case("eigh, 512 x 512", "device", matrices(torch.linalg.eigh, 512, 512, positive=True), bar=1.1),
    Case("solve, 1000 of 16 x 16", "device", solve(16, 1, 1000), bar=1.1),
    Case("solve, 512 x 512", "device", solve(512, 8), bar=1.1),
    Case("solve, 4096 x 4096", "device", solve(4096, 8), bar=1.1),
    Case("inv, 512 x 512", "device", matrices(torch.linalg.inv, 512, 512), bar=1.1),
    Case("cholesky, 512 x 512", "device", matrices(torch.linalg.cholesky, 512, 512, positive=True), 0, 1.1),
    Case(
        "cholesky, 4096 x 4096", "device", matrices(torch.linalg.cholesky, 4096, 4096, positive=True), bar=1.1
    ),
    Case("CSR (1e5, 1e5) of 20 in a row @ 64", "device", sparse_product(torch.sparse_csr, 64), bar=1.1),
    Case("CSR (1e5, 1e5) of 20 in a row @ 256", "device", sparse_product(torch.sparse_csr, 256), bar=1.1),
    Case("COO (1e5, 1e5) of 20 in a row @ 64", "device", sparse_product(torch.sparse_coo, 64), bar=1.1),
    Case("sampled_addmm, (1e5, 1e5) of 20 in a row, 64", "device", sampled_product, bar=1.1),
    Case("matmul 2048^3 float64", "device", square_product(torch.float64), bar=1.1),
    Case("matmul 2048^3 complex64", "device", square_product(torch.complex64), bar=1.1),
    Case("scaled_mm 4096^3, 1 x 128 and 128 x 128", "device", scaled_product, bar=1.1),
    Case("attention of 64 jagged sequences", "device", jagged_attention, bar=1.1),
]


def _backward(function: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> Callable[[str], Call]:
    def make(device: str) -> Call:
        tensors = [normal(device, *shape).requires_grad_() for shape in shapes]
        return lambda: function(*tensors).sum().backward()

    return make


def _embedding(device: str) -> Call:
    table, index = normal(device, 50000, 512).requires_grad_(), integers(device, 50000, 64, 512)
    return lambda: functional.embedding(index, table).sum().backward()


def _cross_entropy(device: str) -> Call:
    x, y = normal(device, 8192, 50000).requires_grad_(), integers(device, 50000, 8192)
    return lambda: functional.cross_entropy(x, y).backward()


# One process per device: with a registered device, autograd of torch.cuda has no streams.
BACKWARD = [
    Case(
        "(x * 2).relu().sum() and backward, 16 x 64",
        "host",
        _backward(lambda x: (x * 2).relu(), (16, 64)),
        bar=1.0,
    ),
    Case("embedding and backward, (50000, 512)[64, 512]", "device", _embedding),
    Case("cross_entropy and backward, 8192 x 50000", "device", _cross_entropy),
    Case(
        "layer_norm and backward, 4096 x 1024",
        "device",
        _backward(lambda x, w, b: functional.layer_norm(x, (1024,), w, b), (4096, 1024), (1024,), (1024,)),
    ),
    Case("softmax and backward, 4096 x 4096", "device", _backward(lambda x: x.softmax(1), (4096, 4096))),
]
