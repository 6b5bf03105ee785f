# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Layouts that fake tensors give to results of convolutions.

torch asks C++ for the memory format of a convolution's result, where every device but XPU whose convolutions
are "overrideable" counts as contiguous (`determine_backend_memory_format`). On musa, as on the CPU, the
result is channels_last as soon as the input or the weight is. A graph that was compiled with other strides
fails where it uses them.
"""

import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses import fake_impls

_CHANNELS_LAST = (torch.channels_last, torch.channels_last_3d)


def register():
    """Wrap torch's rules of the three operators, once."""
    aten = torch.ops.aten
    # For each, where the input and the weight are among the arguments.
    for op, operands in (
        (aten.convolution.default, (0, 1)),
        (aten._convolution.default, (0, 1)),
        (aten.convolution_backward.default, (1, 2)),
    ):
        rule = _rule(fake_impls.op_implementations_dict[op], operands)
        fake_impls._deregister_op_impl(op)
        fake_impls.register_op_impl(op)(rule)


def _rule(torchs, operands):
    """A rule of fake tensors: torch's own, and for musa the layout that the device gives."""

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
    """The channels_last format of the input or else of the weight of a convolution, or None."""
    if tensors[0].dim() == 3:
        # A convolution of one dimension is one of two dimensions whose height is 1, of an input that torch
        # makes contiguous: the weight alone decides.
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
