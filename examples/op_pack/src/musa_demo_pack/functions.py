# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.demo`: the pack's operators as functions, and an operator written in Python."""

import torch


def scale_shift(tensor, scale=1.0, shift=0.0):
    """Returns `tensor * scale + shift`, computed by one operator."""
    return torch.ops.musa_demo.scale_shift(tensor, scale, shift)


def bias_relu(tensor, bias):
    """Returns `relu(tensor + bias)` of float32 tensors, computed by one kernel."""
    return torch.ops.musa_demo.bias_relu(tensor, bias)


def softmax_rows(tensor):
    """Returns `softmax(tensor, -1)` of a float32 tensor, computed by muDNN."""
    return torch.ops.musa_demo.softmax_rows(tensor)


# An operator in Python: torch.compile and autograd see a single operator, regardless of its
# implementation.
@torch.library.custom_op("musa_demo::mean_square", mutates_args=(), device_types="musa")
def mean_square(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the mean of the squared elements as a 0-dim tensor."""
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
