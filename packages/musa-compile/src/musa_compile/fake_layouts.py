# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Layouts of results in fake tensors, where torch's rules for other devices differ from musa's kernels.

torch determines the memory format of a convolution's result in C++ (`determine_backend_memory_format`), where
every device with "overrideable" convolutions except XPU counts as contiguous. On musa, as on the CPU, the
result is channels_last if the input or the weight is. `nonzero_static` is contiguous, as on the CPU; torch
transposes it for every device but three. A graph compiled with other strides fails when it uses them.
"""

import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses import fake_impls

_CHANNELS_LAST = (torch.channels_last, torch.channels_last_3d)


def register():
    """Replaces torch's rules of these operators by rules that know musa. Called once."""
    aten = torch.ops.aten
    # For each operator: the argument positions of input and weight.
    for op, operands in (
        (aten.convolution.default, (0, 1)),
        (aten._convolution.default, (0, 1)),
        (aten.convolution_backward.default, (1, 2)),
    ):
        if op not in fake_impls.op_implementations_dict:
            continue  # torch 2.11 composes _convolution of the others
        rule = _rule(fake_impls.op_implementations_dict[op], operands)
        fake_impls._deregister_op_impl(op)
        fake_impls.register_op_impl(op)(rule)
    fake_impls.register_op_impl(aten.nonzero_static.default)(_nonzero_static)


def _nonzero_static(fake_mode, func, tensor, *, size, fill_value=-1):
    """The fake tensor of shape (size, tensor.dim()) for musa; torch's own rule serves other devices."""
    if tensor.device.type != "musa":
        return NotImplemented
    with fake_mode:
        return tensor.new_empty((size, tensor.dim()), dtype=torch.long)


def _rule(torchs, operands):
    """Returns a fake tensor rule: torch's rule, with the device's layout for musa."""

    def rule(fake_mode, func, *args, **kwargs):
        result = torchs(fake_mode, func, *args, **kwargs)
        names = [argument.name for argument in func._schema.arguments]
        found = [args[at] if at < len(args) else kwargs[names[at]] for at in operands]
        if found[0].device.type != "musa":
            return result
        layout = _layout_of(found)
        if layout is None:
            return result
        with fake_mode:
            if isinstance(result, (tuple, list)):
                return tuple(_laid_out(each, layout) for each in result)
            return _laid_out(result, layout)

    return rule


def _layout_of(tensors):
    """Returns the channels_last format of a convolution's input or weight, or None."""
    if tensors[0].dim() == 3:
        # A 1-d convolution is a 2-d convolution of height 1, whose input torch makes contiguous, so
        # only the weight decides.
        tensors = [tensors[1].unsqueeze(2)]
    for tensor in tensors:
        if tensor.dim() in (4, 5):
            layout = suggest_memory_format(tensor)
            if layout in _CHANNELS_LAST:
                return layout
    return None


def _laid_out(tensor, layout):
    if tensor is None or tensor.dim() < 3:
        return tensor
    if tensor.dim() == 3:
        return tensor.unsqueeze(2).to(memory_format=layout).squeeze(2)
    return tensor.to(memory_format=layout)
