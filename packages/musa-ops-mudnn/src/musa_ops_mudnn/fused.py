# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Gradients and fake kernels of the operators in csrc/fused.cpp and quantized.cpp, `torch.ops.torch_musa.*`.

They exist once the device has been used, or after `torch.musa.init()`, and accept CPU tensors too::

    swiglu(input)
        silu(a) * b, where a, b = input.chunk(2, -1)
    rope(input, freqs, *, interleaved=False, batch_first=True, multi_latent=False)
        Rotary position embedding (Su et al. 2021). input has shape (batch, positions, heads, elements);
        without batch_first, the first two are exchanged; with three dimensions there is no batch. freqs is a
        table of angles (S, R), or of cosine and sine (S, R / 2, 2).
    conv2d_bias_act(input, weight, bias=None, add=None, *, stride=1, padding=0, dilation=1, groups=1,
                    activation="none")
        activation(conv2d(input, weight, bias) + add); the activations are none, relu, sigmoid, tanh,
        hardswish and silu.
    cross_entropy(input, target, weight=None, *, reduction=1, ignore_index=-100, label_smoothing=0.0)
        Like torch.nn.functional.cross_entropy; the reductions are 0 for none, 1 for mean, 2 for sum.
    quantized_linear(input, weight, bias=None, *, input_scale, weight_scale, output_scale)
        linear(input, weight, bias) of int8 (..., in) and (out, in), where an integer q represents q * scale;
        bias is float32 (out). The result is rounded to int8 (..., out), ties to even.

All but the last are differentiable with respect to `input`, `add`, and `weight` and `bias` of a convolution;
all but cross_entropy more than once. A gradient with respect to another operand raises an error.
"""

import torch

# Owns the registrations, which are removed when it is destroyed.
_library = None


def register():
    """Registers the fake kernels and gradients once, after the pack's library was loaded."""
    global _library
    if _library is not None:
        return
    _library = torch.library.Library("torch_musa", "FRAGMENT")
    for name, fake in _FAKES.items():
        torch.library.register_fake(f"torch_musa::{name}", fake, lib=_library)
    for name, (setup, backward) in _GRADIENTS.items():
        torch.library.register_autograd(f"torch_musa::{name}", backward, setup_context=setup, lib=_library)


def _refuse_gradients(ctx, op, names, cure):
    """Raises an error if an input without a gradient requires one: returning None would be taken for zero."""
    for index, name in names.items():
        if index < len(ctx.needs_input_grad) and ctx.needs_input_grad[index]:
            raise RuntimeError(
                f"torch_musa::{op} has no gradient with respect to {name}, which requires one.\nFix: {cure}"
            )


# ---- swiglu


def _swiglu_fake(input):
    torch._check(
        input.dim() > 0 and input.shape[-1] % 2 == 0, lambda: "swiglu splits the last dimension in two"
    )
    return input.new_empty((*input.shape[:-1], input.shape[-1] // 2))


def _swiglu_backward_fake(grad, input):
    return input.new_empty(input.shape)


def _save_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _swiglu_backward(ctx, grad):
    (input,) = ctx.saved_tensors
    return torch.ops.torch_musa.swiglu_backward(grad, input)


def _swiglu_twice(ctx, outer):
    """Gradients of swiglu_backward(grad, input), whose result is [grad * b * silu'(a), grad * silu(a)]."""
    grad, input = ctx.saved_tensors
    a, b = input.chunk(2, -1)
    outer_a, outer_b = outer.chunk(2, -1)
    sigmoid = torch.sigmoid(a)
    silu = a * sigmoid
    slope = sigmoid * (1 + a * (1 - sigmoid))
    bend = sigmoid * (1 - sigmoid) * (2 + a * (1 - 2 * sigmoid))
    by_grad = outer_a * b * slope + outer_b * silu
    by_a = outer_a * grad * b * bend + outer_b * grad * slope
    by_b = outer_a * grad * slope
    return by_grad, torch.cat([by_a, by_b], -1)


# ---- rope


def _rope_fake(input, freqs, *, interleaved=False, batch_first=True, multi_latent=False):
    return input.new_empty(input.shape)


def _save_rotation(ctx, inputs, keyword_only_inputs, output):
    _refuse_gradients(
        ctx, "rope", {1: "freqs"}, "for learned frequencies, write the embedding with torch's operators."
    )
    ctx.save_for_backward(inputs[1])
    ctx.options = keyword_only_inputs


def _rope_backward(ctx, grad):
    (freqs,) = ctx.saved_tensors
    return torch.ops.torch_musa.rope_backward(grad, freqs, **ctx.options), None


def _rope_twice(ctx, outer):
    (freqs,) = ctx.saved_tensors
    # The map is linear, so the gradient of its transpose is the map itself.
    return torch.ops.torch_musa.rope(outer, freqs, **ctx.options), None


# ---- conv2d_bias_act


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _lies_channels_last(tensor):
    return tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def _convolution_fake(
    input, weight, bias=None, add=None, *, stride=1, padding=0, dilation=1, groups=1, activation="none"
):
    torch._check(
        input.dim() == 4 and weight.dim() == 4,
        lambda: "conv2d_bias_act takes (N, C, H, W) and (O, C / groups, h, w)",
    )
    window = zip(input.shape[2:], weight.shape[2:], _pair(stride), _pair(padding), _pair(dilation))
    space = [(size + 2 * pad - gap * (kernel - 1) - 1) // step + 1 for size, kernel, step, pad, gap in window]
    channels_last = _lies_channels_last(input) or _lies_channels_last(weight)
    return torch.empty(
        (input.shape[0], weight.shape[0], *space),
        dtype=input.dtype,
        device=input.device,
        memory_format=torch.channels_last if channels_last else torch.contiguous_format,
    )


def _silu_backward(grad, argument):
    if not torch.is_grad_enabled():
        return torch.ops.aten.silu_backward(grad, argument)
    # aten::silu_backward is not differentiable.
    sigmoid = torch.sigmoid(argument)
    return grad * sigmoid * (1 + argument * (1 - sigmoid))


# The gradient with respect to the argument of the activation, computed from its result or from the argument.
_BY_RESULT = {
    "none": lambda grad, result: grad,
    "relu": lambda grad, result: torch.ops.aten.threshold_backward(grad, result, 0),
    "sigmoid": torch.ops.aten.sigmoid_backward,
    "tanh": torch.ops.aten.tanh_backward,
}
_BY_ARGUMENT = {"silu": _silu_backward, "hardswish": torch.ops.aten.hardswish_backward}


def _save_convolution(ctx, inputs, keyword_only_inputs, output):
    input, weight, bias, add = inputs
    ctx.options = options = dict(keyword_only_inputs)
    ctx.activation = options.pop("activation")
    ctx.biased, ctx.added = bias is not None, add is not None
    if ctx.activation in _BY_RESULT:
        ctx.save_for_backward(input, weight, output)
    else:
        ctx.save_for_backward(input, weight, bias, add)  # the convolution is recomputed


def _convolution_backward(ctx, grad):
    input, weight, *saved = ctx.saved_tensors
    if ctx.activation in _BY_RESULT:
        grad = _BY_RESULT[ctx.activation](grad, *saved)
    else:
        bias, add = saved
        argument = torch.nn.functional.conv2d(input, weight, bias, **ctx.options)
        grad = _BY_ARGUMENT[ctx.activation](grad, argument if add is None else argument + add)
    # Omitted operands have no entry in needs_input_grad.
    by_input, by_weight, by_bias, by_add = (*ctx.needs_input_grad, False, False)[:4]
    gradients = (None, None, None)
    if by_input or by_weight or by_bias:
        gradients = torch.ops.aten.convolution_backward(
            grad,
            input,
            weight,
            [weight.shape[0]] if ctx.biased else None,
            _pair(ctx.options["stride"]),
            _pair(ctx.options["padding"]),
            _pair(ctx.options["dilation"]),
            False,
            [0, 0],
            ctx.options["groups"],
            [by_input, by_weight, by_bias],
        )
    return *gradients, grad if by_add else None


# ---- cross_entropy


def _cross_entropy_fake(input, target, weight=None, *, reduction=1, ignore_index=-100, label_smoothing=0.0):
    if reduction != 0:
        return input.new_empty(())
    if not target.is_floating_point():
        return input.new_empty(target.shape)
    return input.new_empty(input.shape[1:] if input.dim() == 1 else (input.shape[0], *input.shape[2:]))


def _cross_entropy_backward_fake(grad, input, target, weight=None, **options):
    return input.new_empty(input.shape)


def _save_loss(ctx, inputs, keyword_only_inputs, output):
    _refuse_gradients(
        ctx, "cross_entropy", {1: "target", 2: "weight"}, "use torch.nn.functional.cross_entropy."
    )
    ctx.save_for_backward(*inputs)
    ctx.options = keyword_only_inputs


def _cross_entropy_backward(ctx, grad):
    gradient = torch.ops.torch_musa.cross_entropy_backward(grad, *ctx.saved_tensors, **ctx.options)
    return gradient, None, None


def _save_nothing(ctx, inputs, keyword_only_inputs, output):
    pass


def _cross_entropy_twice(ctx, outer):
    raise RuntimeError(
        "torch_musa::cross_entropy has no second derivative.\nFix: use torch.nn.functional.cross_entropy."
    )


# ---- quantized_linear


def _quantized_linear_fake(input, weight, bias=None, *, input_scale, weight_scale, output_scale):
    torch._check(
        input.dim() >= 1 and weight.dim() == 2 and input.shape[-1] == weight.shape[1],
        lambda: "quantized_linear takes an input (..., in) and a weight (out, in)",
    )
    return input.new_empty((*input.shape[:-1], weight.shape[0]))


_FAKES = {
    "swiglu": _swiglu_fake,
    "swiglu_backward": _swiglu_backward_fake,
    "rope": _rope_fake,
    "rope_backward": _rope_fake,
    "conv2d_bias_act": _convolution_fake,
    "cross_entropy": _cross_entropy_fake,
    "cross_entropy_backward": _cross_entropy_backward_fake,
    "quantized_linear": _quantized_linear_fake,
}
_GRADIENTS = {
    "swiglu": (_save_inputs, _swiglu_backward),
    "swiglu_backward": (_save_inputs, _swiglu_twice),
    "rope": (_save_rotation, _rope_backward),
    "rope_backward": (_save_rotation, _rope_twice),
    "conv2d_bias_act": (_save_convolution, _convolution_backward),
    "cross_entropy": (_save_loss, _cross_entropy_backward),
    "cross_entropy_backward": (_save_nothing, _cross_entropy_twice),
}
