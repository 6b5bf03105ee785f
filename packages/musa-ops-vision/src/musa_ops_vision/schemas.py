# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Schemas and fake kernels of torchvision's operators, for use without torchvision's C++ library."""

import sys

import torch

from . import fakes

NAMESPACE = "torchvision"
# Must be equal to the schemas in torchvision's C++ library.
_REGION = "Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_GRADIENT = "Tensor grad, Tensor rois, {}float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask"
)
SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": f"(Tensor input, {_REGION}, int sampling_ratio, bool aligned) -> Tensor",
    "_roi_align_backward": f"({_GRADIENT.format('')}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool": f"(Tensor input, {_REGION}) -> (Tensor, Tensor)",
    "_roi_pool_backward": f"({_GRADIENT.format('Tensor argmax, ')}, {_SIZES}) -> Tensor",
    "ps_roi_align": f"(Tensor input, {_REGION}, int sampling_ratio) -> (Tensor, Tensor)",
    "_ps_roi_align_backward":
        f"({_GRADIENT.format('Tensor channel_mapping, ')}, int sampling_ratio, {_SIZES}) -> Tensor",
    "ps_roi_pool": f"(Tensor input, {_REGION}) -> (Tensor, Tensor)",
    "_ps_roi_pool_backward": f"({_GRADIENT.format('Tensor channel_mapping, ')}, {_SIZES}) -> Tensor",
    "deform_conv2d": f"({_CONVOLUTION}) -> Tensor",
    "_deform_conv2d_backward": f"(Tensor grad, {_CONVOLUTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
}  # fmt: skip

# Operators for which torchvision registers a fake kernel even if its library is not loaded. qnms,
# for quantized boxes, has no kernel here and is defined only for that registration.
FAKES_OF_TORCHVISION = ("nms", "qnms")
QNMS = SCHEMAS["nms"]

_library = None  # owns the definitions; torch removes them when it is deleted
_defined = []  # names
_without_fake = []  # the subset whose fake kernel is not registered yet


def defined():
    """Returns the names of the operators that this module defines."""
    return list(_defined)


def define_missing(for_torchvision=False):
    """Defines operators that do not exist yet.

    Args:
        for_torchvision (bool): define `qnms` too, which `import torchvision` needs.
    """
    global _library
    wanted = {**SCHEMAS, "qnms": QNMS} if for_torchvision else SCHEMAS
    missing = [name for name in wanted if not hasattr(torch.ops.torchvision, name)]
    if missing:
        if _library is None:
            _library = torch.library.Library(NAMESPACE, "FRAGMENT")
        for name in missing:
            _library.define(name + wanted[name])
        _defined.extend(missing)
        _without_fake.extend(missing)


def register_missing_fakes():
    """Registers fake kernels for the operators defined by this module.

    Those in FAKES_OF_TORCHVISION are skipped if torchvision is imported.
    """
    names, _without_fake[:] = list(_without_fake), []
    for name in names:
        if name not in FAKES_OF_TORCHVISION:
            _library.impl(name, getattr(fakes, name.removeprefix("_")), "Meta")
        elif "torchvision._meta_registrations" not in sys.modules:
            torch.library.register_fake(f"{NAMESPACE}::nms", fakes.nms, lib=_library)


def remove():
    """Removes the definitions. Kernels stay registered and serve torchvision's definitions."""
    global _library
    _library = None
    _defined.clear()
    _without_fake.clear()
