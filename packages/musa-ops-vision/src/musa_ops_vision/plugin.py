# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called on first use of the device."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "torchvision's operators: nms, pooling of regions, deformable convolution"}


@hookimpl
def musa_libraries():
    from . import schemas

    # Must run before the library is loaded, because kernels are checked against the schemas that
    # exist at that time.
    schemas.define_missing()
    return ["lib/libmusa_ops_vision.so"]


@hookimpl
def musa_register(musa):
    from . import schemas

    schemas.register_missing_fakes()


@hookimpl
def musa_doctor_checks():
    return [("operators", _computes), ("torchvision", _torchvision)]


def _computes():
    import torch

    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]], device="musa")
    kept = torch.ops.torchvision.nms(boxes, torch.tensor([0.5, 0.9, 0.3], device="musa"), 0.5).tolist()
    if kept != [1, 2]:
        raise AssertionError(f"nms kept the boxes {kept} of three, expected [1, 2]")
    return "nms keeps two of three boxes"


def _torchvision():
    import importlib.util

    if importlib.util.find_spec("torchvision") is None:
        return "not installed; the operators are torch.ops.torchvision.*"
    import torch
    import torchvision

    if not torchvision.extension._has_ops():
        raise UserWarning(
            f"the C++ library of torchvision {torchvision.__version__} could not be loaded beside torch "
            f"{torch.__version__}: torch.ops.torchvision.* works on musa, torchvision.ops raises an error.\n"
            "Likely cause: torchvision was built for another torch, for example for one with CUDA.\n"
            "Fix: install torchvision from the index that torch came from"
        )
    return f"{torchvision.__version__}, with its C++ library"
