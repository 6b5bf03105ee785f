# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Cases of real CUDA extensions: results on "musa" compared with the CPU's. Each extension has a function."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

Case = contextlib.AbstractContextManager[None]


@dataclass
class Comparison:
    """Counts cases; a case is right if its block raises no exception."""

    right: int = 0
    wrong: dict[str, str] = field(default_factory=dict)  # name of a case -> its exception

    @contextlib.contextmanager
    def case(self, *name: object) -> Iterator[None]:
        text = " ".join(str(part).removeprefix("torch.") for part in name)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the record has every exception of a case
            self.wrong[text] = f"{type(error).__name__}: {error}"[:400]
        else:
            self.right += 1


def same(got: torch.Tensor, expected: torch.Tensor, *, rtol: float | None = None, atol: float | None = None):
    """Raises AssertionError unless a tensor on "musa" is close to one on the CPU and of the same dtype."""
    assert got.device.type == "musa", f"the result is on {got.device}"
    torch.testing.assert_close(got.cpu(), expected, rtol=rtol, atol=atol, equal_nan=True)


def on_musa(*tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    return [None if tensor is None else tensor.detach().to("musa") for tensor in tensors]


def torch_scatter(compare: Comparison) -> None:
    """Scatter and segment reductions with gradients. 8- and 16-bit integers are left out.

    For negative results, the extension's atomic operations on them also write the bits above the element.
    """
    library = importlib.import_module("torch_scatter")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64):
        # Half-precision values are added in the order in which threads run.
        tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype is torch.float16 else {}
        for shape in ((5,), (16, 7), (3, 0), (60, 3), (2, 5, 4)):
            x = torch.randn(shape).mul(3).to(dtype)
            for dim in (0, -1):
                index = torch.randint(0, 6, shape)
                for reduce in ("sum", "mean", "min", "max", "mul"):
                    if reduce == "mul" and dtype is torch.float16:
                        continue  # products are out of range
                    with compare.case("scatter", reduce, dtype, shape, dim):
                        got = library.scatter(*on_musa(x, index), dim=dim, reduce=reduce, dim_size=6)
                        same(got, library.scatter(x, index, dim=dim, reduce=reduce, dim_size=6), **tolerance)
    rows = torch.randn(40, 5, dtype=torch.float64)
    starts = torch.tensor([0, 0, 7, 8, 31, 40])
    order = torch.randint(0, 9, (40,)).sort().values
    for reduce in ("sum", "mean", "min", "max"):
        with compare.case("segment_csr", reduce):
            got = library.segment_csr(*on_musa(rows, starts), reduce=reduce)
            same(got, library.segment_csr(rows, starts, reduce=reduce))
        with compare.case("segment_coo", reduce):
            got = library.segment_coo(*on_musa(rows, order), dim_size=9, reduce=reduce)
            same(got, library.segment_coo(rows, order, dim_size=9, reduce=reduce))
        with compare.case("gradient", reduce):
            gradients = []
            for device in ("cpu", "musa"):
                x = rows.detach().clone().to(device).requires_grad_()
                out = library.scatter(x, order.to(device)[:, None].expand_as(x), dim=0, reduce=reduce)
                out.square().sum().backward()
                gradients.append(x.grad)
            same(gradients[1], gradients[0])
    with compare.case("gather_csr"):
        same(library.gather_csr(*on_musa(rows[:5], starts)), library.gather_csr(rows[:5], starts))
    with compare.case("gather_coo"):
        same(library.gather_coo(*on_musa(rows[:9], order)), library.gather_coo(rows[:9], order))


def torch_cluster(compare: Comparison) -> None:
    """Neighbours, sampling and clusters of points, and random walks, whose edges are compared."""
    library = importlib.import_module("torch_cluster")
    for dtype in (torch.float32, torch.float64):
        x, y = torch.randn(50, 3, dtype=dtype), torch.randn(20, 3, dtype=dtype)
        of_x, of_y = torch.randint(0, 3, (50,)).sort().values, torch.arange(20) % 3
        of_y = of_y.sort().values
        for k in (1, 4, 17):
            with compare.case("knn", dtype, k):
                got = library.knn(*on_musa(x, y), k, *on_musa(of_x, of_y))
                assert edges(got) == edges(library.knn(x, y, k, of_x, of_y))
        for radius in (0.1, 0.8, 5.0):
            with compare.case("radius", dtype, radius):
                got = library.radius(*on_musa(x, y), radius, *on_musa(of_x, of_y), max_num_neighbors=64)
                assert edges(got) == edges(library.radius(x, y, radius, of_x, of_y, max_num_neighbors=64))
        for ratio in (0.1, 0.5, 1.0):
            with compare.case("fps", dtype, ratio):
                got = library.fps(*on_musa(x, of_x), ratio, random_start=False)
                same(got, library.fps(x, of_x, ratio, random_start=False))
        with compare.case("nearest", dtype):
            # Calls the operator itself, because the extension's Python code takes the CPU path unless
            # `is_cuda`.
            starts = [torch.tensor([0, len(points)], device="musa") for points in (x, y)]
            same(torch.ops.torch_cluster.nearest(*on_musa(x, y), *starts), torch.cdist(x, y).argmin(1))
        with compare.case("grid", dtype):
            size = torch.tensor([0.5, 1.0, 2.0], dtype=dtype)
            same(library.grid_cluster(*on_musa(x, size)), library.grid_cluster(x, size))
    row, col = torch.randint(0, 30, (2, 200))
    row, col = torch.cat([row, col]), torch.cat([col, row])
    neighbours = set(zip(row.tolist(), col.tolist(), strict=True))
    with compare.case("graclus"):
        clusters = library.graclus_cluster(*on_musa(row, col), num_nodes=30).cpu()
        for cluster in clusters.unique():
            members = (clusters == cluster).nonzero().flatten().tolist()
            assert len(members) == 1 or (len(members) == 2 and tuple(members) in neighbours), members
    for p, q in ((1.0, 1.0), (0.5, 2.0)):
        with compare.case("random_walk", p, q):
            start = torch.arange(30)[torch.bincount(row, minlength=30) > 0]
            walks = library.random_walk(*on_musa(row, col, start), walk_length=12, p=p, q=q).cpu()
            assert walks.shape == (len(start), 13) and torch.equal(walks[:, 0], start)
            steps = zip(walks[:, :-1].flatten().tolist(), walks[:, 1:].flatten().tolist(), strict=True)
            # With other weights a rejected candidate changes the row that the extension draws from next.
            assert set(steps) <= neighbours or (p, q) != (1.0, 1.0)
            assert walks.min() >= 0 and walks.max() < 30
            assert len({tuple(walk) for walk in walks.tolist()}) > 1


def edges(pairs: torch.Tensor) -> set[tuple[int, int]]:
    """The columns of a tensor of shape (2, n)."""
    return set(zip(*pairs.tolist(), strict=True))


def torch_sparse(compare: Comparison) -> None:
    """Products of sparse and dense matrices with gradients, conversions and diagonals."""
    library = importlib.import_module("torch_sparse")
    row, col = (torch.rand(12, 9) < 0.3).nonzero().t()
    for dtype in (torch.float32, torch.float64):
        value, dense = torch.randn(len(row), dtype=dtype), torch.randn(9, 5, dtype=dtype)
        for reduce in ("sum", "mean", "min", "max"):
            results = []
            with compare.case("spmm", reduce, dtype):
                for device in ("cpu", "musa"):
                    weights = value.clone().to(device).requires_grad_()
                    right = dense.clone().to(device).requires_grad_()
                    left = library.SparseTensor(
                        row=row.to(device), col=col.to(device), value=weights, sparse_sizes=(12, 9)
                    )
                    out = library.matmul(left, right, reduce=reduce)
                    out.square().sum().backward()
                    results.append((out.detach(), weights.grad, right.grad))
                for got, expected in zip(results[1], results[0], strict=True):
                    same(got, expected)
    with compare.case("transpose"):
        index, _ = library.transpose(torch.stack([row, col]).to("musa"), None, 12, 9)
        same(index, library.transpose(torch.stack([row, col]), None, 12, 9)[0])
    with compare.case("pointers"):
        starts = torch.ops.torch_sparse.ind2ptr(row.to("musa"), 12)
        same(starts, torch.ops.torch_sparse.ind2ptr(row, 12))
        same(torch.ops.torch_sparse.ptr2ind(starts, len(row)), row)
    with compare.case("diagonal"):
        mask = torch.ops.torch_sparse.non_diag_mask
        same(mask(*on_musa(row, col), 12, 9, 0), mask(row, col, 12, 9, 0))


def torchvision(compare: Comparison) -> None:
    """The operators on boxes and regions, forward and backward."""
    operators = importlib.import_module("torchvision.ops")
    for count in (0, 1, 63, 64, 65, 200):
        corners = torch.rand(count, 2) * 50
        boxes = torch.cat([corners, corners + torch.rand(count, 2) * 30 + 0.1], 1)
        scores = torch.rand(count)
        for threshold in (0.2, 0.6):
            with compare.case("nms", count, threshold):
                got = operators.nms(*on_musa(boxes, scores), threshold)
                same(got, operators.nms(boxes, scores, threshold))
    regions = torch.tensor([[0, 1.0, 1.0, 9.0, 8.0], [1, 0.5, 2.5, 12.2, 13.1], [0, 3.0, 3.0, 3.5, 3.2]])
    plain = {
        "roi_align": lambda x, r: operators.roi_align(x, r, 3, 0.8, 2, aligned=True),
        "roi_align, adaptive": lambda x, r: operators.roi_align(x, r, (2, 4), 1.0),
        "roi_pool": lambda x, r: operators.roi_pool(x, r, 3, 0.8),
        "ps_roi_align": lambda x, r: operators.ps_roi_align(x, r, 2, 0.9, 2),
        "ps_roi_pool": lambda x, r: operators.ps_roi_pool(x, r, 2, 0.9),
    }
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(2, 8, 16, 14, dtype=dtype)
        for name, function in plain.items():
            compare_gradients(compare, (name, dtype), function, x, regions.to(dtype))
        offset, mask = torch.randn(2, 2 * 9, 14, 12, dtype=dtype), torch.rand(2, 9, 14, 12, dtype=dtype)
        weight, bias = torch.randn(5, 8, 3, 3, dtype=dtype), torch.randn(5, dtype=dtype)
        compare_gradients(
            compare, ("deform_conv2d", dtype),
            lambda a, o, w, b, m: operators.deform_conv2d(a, o, w, b, mask=m), x, offset, weight, bias, mask,
        )  # fmt: skip


def compare_gradients(compare: Comparison, name: tuple, function, first: torch.Tensor, *rest: torch.Tensor):
    """The result of `function(first, *rest)`, and the gradient of the first argument, on both devices."""
    with compare.case(*name):
        results = []
        for device in ("cpu", "musa"):
            x = first.detach().clone().to(device).requires_grad_()
            out = function(x, *(tensor.to(device) for tensor in rest))
            weights = torch.arange(out.numel(), dtype=out.dtype, device=device).view_as(out).cos()
            (out * weights).sum().backward()
            results.append((out.detach(), x.grad))
        same(results[1][0], results[0][0], rtol=1e-4, atol=1e-4)
        same(results[1][1], results[0][1], rtol=1e-4, atol=1e-4)


def causal_conv1d(compare: Comparison) -> None:
    """Convolutions and their updates of a state, compared with the sum over the window.

    Lengths are multiples of 8. Other lengths are copied by CUB, and the extension stores 16-byte words after
    CUB's storage, which muAlg aligns to 8 bytes and CUDA's CUB to 16.
    """
    library = importlib.import_module("causal_conv1d")
    tolerance = {"rtol": 2e-3, "atol": 2e-3}
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        close = tolerance if dtype is torch.float32 else {"rtol": 3e-2, "atol": 3e-2}
        for batch, channels, length, width in ((2, 8, 16, 4), (1, 16, 40, 3), (2, 8, 8, 2), (1, 8, 704, 4)):
            for activation in (None, "silu"):
                x = torch.randn(batch, channels, length).to(dtype)
                weight, bias = torch.randn(channels, width).to(dtype), torch.randn(channels).to(dtype)
                with compare.case("forward", dtype, (batch, channels, length, width), activation):
                    got = library.causal_conv1d_fn(*on_musa(x, weight, bias), activation=activation)
                    same(got, convolved(x, weight, bias, activation).to(dtype), **close)
                with compare.case("backward", dtype, (batch, channels, length, width), activation):
                    given = [tensor.requires_grad_() for tensor in on_musa(x, weight, bias)]
                    library.causal_conv1d_fn(*given, activation=activation).float().square().sum().backward()
                    expected = [tensor.float().requires_grad_() for tensor in (x, weight, bias)]
                    convolved(*expected, activation).square().sum().backward()
                    for tensor, wanted in zip(given, expected, strict=True):
                        scale = wanted.grad.abs().max().item() + 1
                        same(tensor.grad.float() / scale, wanted.grad / scale, **close)
        for activation in (None, "silu"):
            with compare.case("update", dtype, activation):
                state, x = torch.randn(2, 8, 3).to(dtype), torch.randn(2, 8).to(dtype)
                weight, bias = torch.randn(8, 4).to(dtype), torch.randn(8).to(dtype)
                moved = state.to("musa")
                given = on_musa(weight, bias)
                got = library.causal_conv1d_update(x.to("musa"), moved, *given, activation=activation)
                window = torch.cat([state, x[..., None]], -1)
                same(got, convolved(window, weight, bias, activation)[..., -1].to(dtype), **close)
                same(moved, window[..., 1:])


def convolved(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, activation: str | None):
    """out[b, c, t] = bias[c] + sum over w of weight[c, w] * x[b, c, t - width + 1 + w], in float32."""
    width = weight.shape[1]
    padded = torch.nn.functional.pad(x.float(), (width - 1, 0))
    out = (padded.unfold(-1, width, 1) * weight.float()[:, None]).sum(-1) + bias.float()[:, None]
    return out * out.sigmoid() if activation == "silu" else out


def amp_c(compare: Comparison) -> None:
    """apex's operations on lists of tensors."""
    library = importlib.import_module("amp_C")
    for dtype in (torch.float32, torch.float16):
        lists = [torch.randn(size).to(dtype) for size in (1, 300, 70000)]
        moved, none = on_musa(*lists), torch.zeros(1, dtype=torch.int32, device="musa")
        with compare.case("scale", dtype):
            out = [torch.empty_like(tensor) for tensor in moved]
            library.multi_tensor_scale(2048 * 32, none, [moved, out], 0.25)
            for got, tensor in zip(out, lists, strict=True):
                same(got, tensor * 0.25)
            assert none.item() == 0
        with compare.case("scale reports an overflow", dtype):
            flag = torch.zeros(1, dtype=torch.int32, device="musa")
            bad = [torch.full((10,), float("inf"), dtype=dtype, device="musa")]
            library.multi_tensor_scale(2048 * 32, flag, [bad, [torch.empty_like(bad[0])]], 1.0)
            assert flag.item() == 1
        with compare.case("l2norm", dtype):
            total, each = library.multi_tensor_l2norm(2048 * 32, none, [moved], True)
            norms = torch.stack([tensor.float().norm() for tensor in lists])
            same(each, norms, rtol=1e-3, atol=1e-3)
            same(total, norms.norm()[None], rtol=1e-3, atol=1e-3)
        with compare.case("axpby", dtype):
            out = [torch.empty_like(tensor) for tensor in moved]
            library.multi_tensor_axpby(2048 * 32, none, [moved, moved, out], 2.0, -0.5, -1)
            for got, tensor in zip(out, lists, strict=True):
                same(got, (tensor.float() * 1.5).to(dtype), rtol=1e-2, atol=1e-2)
    with compare.case("adam"):
        parameters = [torch.randn(size) for size in (3, 5000)]
        gradients = [torch.randn_like(tensor) for tensor in parameters]
        expected = [tensor.clone().requires_grad_() for tensor in parameters]
        optimizer = torch.optim.Adam(expected, lr=0.1)
        moved = on_musa(*parameters)
        means, squares = [torch.zeros_like(t) for t in moved], [torch.zeros_like(t) for t in moved]
        for step in (1, 2, 3):
            for tensor, gradient in zip(expected, gradients, strict=True):
                tensor.grad = gradient
            optimizer.step()
            library.multi_tensor_adam(
                2048 * 32, torch.zeros(1, dtype=torch.int32, device="musa"),
                [on_musa(*gradients), moved, means, squares], 0.1, 0.9, 0.999, 1e-8, step, 0, True, 0.0,
            )  # fmt: skip
        for got, tensor in zip(moved, expected, strict=True):
            same(got, tensor.detach(), rtol=1e-4, atol=1e-5)


def fused_layer_norm(compare: Comparison) -> None:
    """apex's layer norm and RMS norm."""
    library = importlib.import_module("fused_layer_norm_cuda")
    for rows, size in ((1, 8), (7, 100), (33, 1024)):
        x, weight, bias = torch.randn(rows, size), torch.randn(size), torch.randn(size)
        moved = on_musa(x, weight, bias)
        wanted = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
        expected = torch.nn.functional.layer_norm(wanted[0], (size,), wanted[1], wanted[2])
        with compare.case("layer_norm", rows, size):
            out, mean, deviation = library.forward_affine(moved[0], (size,), moved[1], moved[2], 1e-5)
            same(out, expected.detach(), rtol=1e-4, atol=1e-4)
            gradients = library.backward_affine(
                torch.ones_like(out), mean, deviation, moved[0], (size,), moved[1], moved[2], 1e-5, False
            )
            expected.sum().backward()
            for got, tensor in zip(gradients, wanted, strict=True):
                same(got, tensor.grad, rtol=1e-3, atol=1e-3)
        with compare.case("rms_norm", rows, size):
            out, _ = library.rms_forward_affine(moved[0], (size,), moved[1], 1e-5)
            same(out, torch.nn.functional.rms_norm(x, (size,), weight, 1e-5), rtol=1e-4, atol=1e-4)


def pytorch3d(compare: Comparison) -> None:
    """Neighbours of points, and areas and normals of triangles."""
    library = importlib.import_module("pytorch3d._C")
    x, y = torch.randn(2, 40, 3), torch.randn(2, 60, 3)
    lengths = torch.tensor([40, 33]), torch.tensor([60, 45])
    for norm in (1, 2):
        for k in (1, 5, 20):
            with compare.case("knn", norm, k):
                # The kernels return the neighbours of a point in no order; the package's Python code sorts
                # them.
                index, distance = library.knn_points_idx(*on_musa(x, y, *lengths), norm, k, -1)
                sorted_distance, order = distance.sort(dim=2)
                expected_index, expected_distance = library.knn_points_idx(x, y, *lengths, norm, k, -1)
                same(sorted_distance[0], expected_distance[0])
                same(index.gather(2, order)[0], expected_index[0])
                # Points behind a cloud's end have no neighbours, and their entries are zero.
                end = int(lengths[0][1])
                same(sorted_distance[1, :end], expected_distance[1, :end])
                same(index.gather(2, order)[1, :end], expected_index[1, :end])
    for radius in (0.3, 1.5):
        with compare.case("ball_query", radius):
            got = library.ball_query(*on_musa(x, y, *lengths), 8, radius, False)
            expected = library.ball_query(x, y, *lengths, 8, radius, False)
            for on_device, on_host in zip(got, expected, strict=True):
                same(on_device, on_host)
    vertices, faces = torch.randn(30, 3), torch.randint(0, 30, (50, 3))
    with compare.case("face_areas_normals"):
        got = library.face_areas_normals_forward(*on_musa(vertices, faces))
        for on_device, on_host in zip(got, library.face_areas_normals_forward(vertices, faces), strict=True):
            same(on_device, on_host)
