# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.demo`: the pack's own operators as functions, and one that is written in Python."""

import torch


def scale_shift(tensor, scale=1.0, shift=0.0):
    """`tensor * scale + shift`, in one operator."""
    return torch.ops.musa_demo.scale_shift(tensor, scale, shift)


def bias_relu(tensor, bias):
    """`relu(tensor + bias)` of float32 tensors, in one kernel."""
    return torch.ops.musa_demo.bias_relu(tensor, bias)


def softmax_rows(tensor):
    """`softmax(tensor, -1)` of a float32 tensor, by muDNN."""
    return torch.ops.musa_demo.softmax_rows(tensor)


# An operator in Python: torch.compile and autograd see one operator, whatever it calls.
@torch.library.custom_op("musa_demo::mean_square", mutates_args=(), device_types="musa")
def mean_square(tensor: torch.Tensor) -> torch.Tensor:
    """The mean of the squared elements, without dimensions."""
    return tensor.square().mean()


@mean_square.register_fake
def _(tensor):
    return tensor.new_empty(())


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, gradient):
    (tensor,) = ctx.saved_tensors
    return gradient * tensor * (2 / tensor.numel())


mean_square.register_autograd(_backward, setup_context=_keep)

__all__ = ["bias_relu", "mean_square", "scale_shift", "softmax_rows"]
