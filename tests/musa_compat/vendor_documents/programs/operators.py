# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The three forms of an operator."""

import torch

import torch_musa  # noqa: F401

a = torch.randn(3, 3, device="musa")
b = torch.empty(3, 3, device="musa")
expected = a.cpu().tril()
assert torch.equal(torch.tril(a).cpu(), expected)
torch.tril(a, out=b)
assert torch.equal(b.cpu(), expected)
assert torch.equal(a.tril_().cpu(), expected)
assert torch.isnan(torch.tensor([1.0, float("nan")], device="musa")).tolist() == [False, True]
torch.testing.assert_close(torch.lerp(a, b, 0.5), a)
assert torch.nonzero(torch.tensor([0, 2], device="musa")).tolist() == [[1]]
print("done")
