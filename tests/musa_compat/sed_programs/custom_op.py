# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators of a program's own: by a decorator, by a library, with fake and backward functions."""

import numpy as np
import torch
from torch import Tensor


@torch.library.custom_op("sedlib::numpy_sin", mutates_args=(), device_types="cuda")
def numpy_sin(x: Tensor) -> Tensor:
    return torch.from_numpy(np.sin(x.cpu().numpy())).to(x.device)


@numpy_sin.register_fake
def _(x):
    return torch.empty_like(x)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * x.cos()


numpy_sin.register_autograd(backward, setup_context=setup_context)


@numpy_sin.register_kernel("cpu")
def _(x):
    return torch.from_numpy(np.sin(x.numpy()))


x = torch.randn(3, device="cuda", requires_grad=True)
y = numpy_sin(x)
y.sum().backward()
torch.testing.assert_close(y, x.sin())
torch.testing.assert_close(x.grad, x.detach().cos())
torch.testing.assert_close(numpy_sin(x.detach().cpu()), x.detach().cpu().sin())
torch.library.opcheck(
    numpy_sin, (torch.randn(3, device="cuda", requires_grad=True),), test_utils="test_schema"
)

torch.library.define("sedlib::scaled", "(Tensor x, float factor) -> Tensor")


@torch.library.impl("sedlib::scaled", "cuda")
def scaled(x, factor):
    return x * factor


@torch.library.register_fake("sedlib::scaled")
def _(x, factor):
    return torch.empty_like(x)


assert torch.ops.sedlib.scaled(torch.ones(2, device="cuda"), 3.0).tolist() == [3.0, 3.0]


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        result = value.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


value = torch.randn(3, 3, device="cuda", dtype=torch.double, requires_grad=True)
assert torch.autograd.gradcheck(Exp.apply, value)
print("done")
