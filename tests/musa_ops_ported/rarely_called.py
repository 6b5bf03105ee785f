# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A program that calls the kernels with barriers that the operator databases do not reach.

Prints `called`, or fails if the pack did not handle an operator.
"""

import torch

from tests.musa_ops_ported import instrumented  # noqa: F401 - before the packs are loaded

aten = torch.ops.aten


def of_one_dtype(dtype):
    x = torch.randn(3, 4, 6, 7, device="musa", dtype=dtype)
    mask = torch.rand(3, 4, 6, 7, device="musa") > 0.5
    aten._masked_softmax_backward(x, aten._masked_softmax(x, mask, 3, 2), mask, 3)

    v = torch.randn(5, 33, device="musa", dtype=dtype)
    for dim, g in enumerate((v[:, :1].contiguous(), v[:1].contiguous())):
        w, norms = aten._weight_norm_interface(v, g, dim)
        aten._weight_norm_interface_backward(w, v, g, norms, dim)

    x = torch.randn(8, 5, 9, device="musa", dtype=dtype)
    mean, inverse = torch.batch_norm_stats(x, 1e-5)
    weight = torch.ones_like(mean)
    several = mean[None].repeat(2, 1), inverse[None].repeat(2, 1)
    torch.batch_norm_gather_stats_with_counts(x, *several, None, None, 0.1, 1e-5, weight[:2] * 72)
    torch.batch_norm_backward_reduce(x, x, mean, inverse, weight, True, True, True)
    torch.batch_norm_update_stats(x, torch.zeros(5, device="musa"), torch.ones(5, device="musa"), 0.1)
    aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)


for dtype in (torch.float32, torch.float16, torch.bfloat16):
    of_one_dtype(dtype)
torch.unique(torch.randint(0, 3, (40, 2), device="musa"), dim=0, return_inverse=True, return_counts=True)
torch.repeat_interleave(torch.tensor([1, 3, 0, 2], device="musa"))
truth = torch.rand(4, 5, 6, device="musa") > 0.5
truth.all(dim=(0, 2)), truth.any(dim=(0, 1))
log_probabilities = torch.randn(20, 3, 6, device="musa").log_softmax(2).requires_grad_()
lengths = torch.tensor([20, 18, 15], device="musa"), torch.tensor([4, 3, 2], device="musa")
torch._ctc_loss(log_probabilities, torch.randint(1, 6, (3, 4), device="musa"), *lengths)[0].sum().backward()
torch.musa.synchronize()

CALLED = (
    *("_masked_softmax", "_masked_softmax_backward"),
    *("_weight_norm_interface", "_weight_norm_interface_backward"),
    *("batch_norm_stats", "batch_norm_backward_reduce", "batch_norm_update_stats", "unique_dim", "all.dims"),
    *("batch_norm_gather_stats_with_counts", "any.dims", "repeat_interleave.Tensor", "_ctc_loss.Tensor"),
    *("_ctc_loss_backward.Tensor", "_native_batch_norm_legit.no_stats"),
)
for op in CALLED:
    rows = torch.musa.ops.explain(f"aten::{op}")["candidates"]
    assert any(row["provider"] == "ported" and row["calls"] for row in rows), op
print("called")
