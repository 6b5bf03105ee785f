# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A program that calls kernels whose threads exchange values in shared memory, of each family, and compares
the results with the CPU's.

Prints `compared`, or fails and names the cases that differ. The order of threads in a block is that of
MUSA_EMULATOR_SCHEDULE.
"""

import torch
from torch.nn import functional

# Lines of one, of some and of all threads of a block, and of more elements than a block has threads.
SHAPES = ((3, 7), (40, 33), (2, 1000), (300, 3), (1, 5000))


def numbers(*shape, dtype=torch.float64, low=-4, high=5):
    """Small integers, whose sums are exact in any order."""
    return torch.randint(low, high, shape).to(dtype)


def distinct(*shape, dtype=torch.float64):
    """Numbers of which no two are equal, so that there is one order and one maximum."""
    count = torch.Size(shape).numel()
    return torch.randperm(count).reshape(shape).sub(count // 2).to(dtype)


def scans():
    for shape in SHAPES:
        for dim in (0, 1):
            x = numbers(*shape)
            yield f"cumsum {shape} {dim}", lambda x, dim=dim: x.cumsum(dim), x
            yield f"cummax {shape} {dim}", lambda x, dim=dim: x.cummax(dim), x
            yield f"cummin {shape} {dim}", lambda x, dim=dim: x.cummin(dim), x
            signs = numbers(*shape, low=0, high=2) * 2 - 1
            yield f"cumprod {shape} {dim}", lambda x, dim=dim: x.cumprod(dim), signs
            yield f"logcumsumexp {shape} {dim}", lambda x, dim=dim: x.logcumsumexp(dim), x.double()


def reductions():
    for shape in SHAPES:
        for dim in (0, 1, (0, 1)):
            x, unique = numbers(*shape), distinct(*shape)
            for name in ("sum", "amax", "amin", "mean", "any", "count_nonzero", "logsumexp"):
                reduce = getattr(torch, name)
                yield f"{name} {shape} {dim}", lambda x, f=reduce, dim=dim: f(x, dim=dim), x
            yield f"var_mean {shape} {dim}", lambda x, dim=dim: torch.var_mean(x, dim=dim, correction=0), x
            yield f"norm {shape} {dim}", lambda x, dim=dim: torch.linalg.vector_norm(x, dim=dim), x
            if isinstance(dim, int):
                yield f"max {shape} {dim}", lambda x, dim=dim: x.max(dim), unique
                yield f"argmin {shape} {dim}", lambda x, dim=dim: x.argmin(dim), unique


def with_gradient(f):
    """f, and the gradients of its operands."""

    def both(*operands):
        leaves = [operand.detach().requires_grad_(operand.is_floating_point()) for operand in operands]
        result = f(*leaves)
        # Other factors than 1, with which many gradients are 0.
        factors = torch.arange(result.numel(), dtype=result.dtype, device=result.device) % 7 - 2
        (result * factors.reshape(result.shape)).sum().backward()
        return [result.detach(), *(leaf.grad for leaf in leaves if leaf.requires_grad)]

    return both


def rows():
    for width in (5, 64, 2500):
        x = torch.randn(4, width, dtype=torch.float64)
        weight, bias = torch.randn(2, width, dtype=torch.float64)
        for name in ("softmax", "log_softmax"):
            f = getattr(torch, name)
            yield f"{name} {width}", with_gradient(lambda x, f=f: f(x, 1)), x
        layer = with_gradient(lambda x, w, b: functional.layer_norm(x, x.shape[1:], w, b))
        yield f"layer_norm {width}", layer, x, weight, bias
        image = x.reshape(1, 4, width)
        group = with_gradient(lambda x: functional.group_norm(x, 2))
        yield f"group_norm {width}", group, image
        batch = with_gradient(lambda x: functional.batch_norm(x, None, None, training=True))
        yield f"batch_norm {width}", batch, image
        yield f"batch_norm of rows {width}", batch, x.t().contiguous()
        normed = with_gradient(lambda v, g: torch._weight_norm(v, g, 0))
        yield f"weight_norm {width}", normed, x, weight[:4].reshape(4, 1)
        target = torch.randint(0, 4, (width,))
        loss = with_gradient(lambda x, to: functional.cross_entropy(x, to))
        yield f"cross_entropy {width}", loss, x.t().contiguous(), target
        bag = with_gradient(
            lambda w, factors, rows: functional.embedding_bag(
                rows, w, rows.new_tensor([0, 2]), mode="sum", per_sample_weights=factors
            )
        )
        yield f"embedding_bag {width}", bag, x, torch.randn(5).double(), torch.tensor([0, 3, 3, 1, 0])


def sorts():
    for shape in ((3, 9), (2, 600), (1, 5000)):
        for dtype in (torch.float32, torch.int16):
            x = distinct(*shape, dtype=dtype)
            for dim in (0, 1) if max(shape) < 1000 else (1,):
                count = shape[dim]
                yield f"sort {shape} {dtype} {dim}", lambda x, dim=dim: x.sort(dim), x
                yield f"stable {shape} {dim}", lambda x, dim=dim: (x % 3).sort(dim=dim, stable=True), x
                k = (count + 1) // 2
                yield f"topk {shape} {dtype} {dim}", lambda x, k=k, dim=dim: x.topk(k, dim), x
                yield f"kthvalue {shape} {dtype} {dim}", lambda x, k=k, dim=dim: x.kthvalue(k, dim), x
                yield f"median {shape} {dtype} {dim}", lambda x, dim=dim: x.median(dim), x


def places():
    for count in (9, 700, 9000):
        x = numbers(count, low=0, high=4)
        yield f"nonzero {count}", lambda x: x.nonzero(), x
        yield f"masked_select {count}", lambda x: x[x > 1], x
        yield f"unique {count}", lambda x: torch.unique(x, return_inverse=True, return_counts=True), x
        runs = x.sort().values
        yield f"unique_consecutive {count}", lambda x: x.unique_consecutive(return_counts=True), runs
        yield f"repeat_interleave {count}", lambda n: torch.repeat_interleave(n), x.long()
        index, source = torch.randint(0, 50, (count,)), numbers(count)
        added = numbers(50)
        yield f"index_add {count}", lambda x, i, y: x.index_add(0, i, y), added, index, source
        put = lambda x, i, y: x.index_put((i,), y, accumulate=True)  # noqa: E731
        yield f"index_put {count}", put, added, index, source
        yield f"scatter_add {count}", lambda x, i, y: x.scatter_add(0, i, y), added, index, source
        yield f"bincount {count}", lambda i: i.bincount(minlength=60), index


def matrices():
    for size in (3, 40):
        x = torch.randn(2, size, size, dtype=torch.float64)
        positive = x @ x.mT + size * torch.eye(size, dtype=torch.float64)
        yield f"cholesky {size}", torch.linalg.cholesky, positive
        yield f"solve {size}", torch.linalg.solve, positive, x
        yield f"inv {size}", torch.linalg.inv, positive
        triangle = lambda a, b: torch.linalg.solve_triangular(a, b, upper=False)  # noqa: E731
        yield f"solve_triangular {size}", triangle, positive.tril(), x
        yield f"bmm {size}", torch.bmm, numbers(2, size, size), numbers(2, size, size)
    for shape in ((40, 90), (3, 33, 65)):
        x = numbers(*shape)
        yield f"transpose {shape}", lambda x: x.mT.contiguous(), x


def sequences():
    log_probabilities = torch.randn(20, 3, 6, dtype=torch.float64).log_softmax(2)
    lengths = torch.tensor([20, 18, 15]), torch.tensor([4, 3, 2])
    ctc = with_gradient(
        lambda x, targets, *lengths: functional.ctc_loss(x, targets, *lengths, reduction="none")
    )
    yield "ctc_loss", ctc, log_probabilities, torch.randint(1, 6, (3, 4)), *lengths


def flat(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def main():
    torch.manual_seed(0)
    wrong, count = [], 0
    for family in (scans, reductions, rows, sorts, places, matrices, sequences):
        for name, f, *operands in family():
            expected, found = flat(f(*operands)), flat(f(*(operand.musa() for operand in operands)))
            count += 1
            try:
                torch.testing.assert_close([one.cpu() for one in found], expected, equal_nan=True)
            except AssertionError as error:
                wrong.append(f"{name}: {error}")
    assert not wrong, f"{len(wrong)} of {count} results differ\n" + "\n".join(wrong)
    print("compared", count)


if __name__ == "__main__":
    main()
