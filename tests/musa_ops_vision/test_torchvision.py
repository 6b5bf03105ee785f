# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Comparisons with torchvision's own CPU kernels: operators, models of detection, and training of models."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from tests.harness import skips
from tests.musa_ops_vision.cases import CASES, WITH_GRADIENT, rois
from tests.musa_ops_vision.test_operators import gradients, outputs

# Sums have the same order as on the CPU, except in products of matrices and atomic additions.
TOLERANCE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_results(torchvision, ops, case):
    arguments = case.with_tensors(lambda t: t.float())
    operator = getattr(ops, case.op)
    expected = outputs(operator(*arguments))
    found = outputs(operator(*(v.to("musa") if isinstance(v, torch.Tensor) else v for v in arguments)))
    for here, there in zip(found, expected, strict=True):
        assert here.dtype == there.dtype
        if here.dtype.is_floating_point:
            torch.testing.assert_close(here.cpu(), there, **TOLERANCE, equal_nan=True)
        else:
            assert torch.equal(here.cpu(), there)


@pytest.mark.parametrize("case", [c for c in WITH_GRADIENT if c.op != "ps_roi_pool"], ids=str)
def test_gradients(torchvision, ops, case):
    operator = getattr(ops, case.op)
    expected = gradients(operator, case.arguments, case.differentiable, "cpu", torch.float32)
    found = gradients(operator, case.arguments, case.differentiable, "musa", torch.float32)
    for here, there in zip(found, expected, strict=True):
        torch.testing.assert_close(here.cpu(), there, atol=1e-3, rtol=1e-3)


def test_the_gradient_of_ps_roi_pool_differs_where_torchvisions_is_wrong(torchvision, ops):
    """torchvision's forward kernel leaves out the last row and column of an image; its gradient does not."""

    def is_right(device, size):
        images = torch.randn(1, 4, 6, 6, dtype=torch.float64).to(device).requires_grad_()
        region = torch.tensor([[0, 1, 1, size, size]], dtype=torch.float64, device=device)
        return torch.autograd.gradcheck(
            lambda x: ops.ps_roi_pool(x, region, 1.0, 2, 2)[0], (images,), raise_exception=False
        )

    assert [is_right("cpu", size) for size in (5.0, 6.0)] == [True, False]
    assert [is_right("musa", size) for size in (5.0, 6.0)] == [True, True]


def test_the_functions_of_torchvision(torchvision, ops):
    functions = torchvision.ops
    images = torch.randn(2, 8, 12, 12)
    regions = [rois(3, 1, 12)[:, 1:].float(), rois(2, 1, 12, seed=5)[:, 1:].float()]
    here = [box.to("musa") for box in regions]
    for pool in (functions.RoIAlign((2, 2), 1.0, 2), functions.RoIPool((2, 2), 1.0)):
        torch.testing.assert_close(pool(images.to("musa"), here).cpu(), pool(images, regions), **TOLERANCE)
    for pool in (functions.PSRoIAlign((2, 2), 1.0, 2), functions.PSRoIPool((2, 2), 1.0)):
        torch.testing.assert_close(pool(images.to("musa"), here).cpu(), pool(images, regions), **TOLERANCE)
    dets, scores = torch.cat(regions), torch.rand(5)
    classes = torch.tensor([0, 1, 0, 1, 1])
    expected = functions.batched_nms(dets, scores, classes, 0.3)
    found = functions.batched_nms(dets.to("musa"), scores.to("musa"), classes.to("musa"), 0.3)
    assert found.tolist() == expected.tolist()
    layer = functions.DeformConv2d(8, 4, 3, padding=1)
    offset = torch.randn(2, 18, 12, 12)
    there = layer(images, offset)
    torch.testing.assert_close(
        layer.to("musa")(images.to("musa"), offset.to("musa")).cpu(), there, **TOLERANCE
    )


def detector(torchvision, masks: bool):
    """A small Faster R-CNN or Mask R-CNN. It takes all proposals, because sampling would be random."""
    from torchvision.models.detection import FasterRCNN, MaskRCNN
    from torchvision.models.detection.rpn import AnchorGenerator
    from torchvision.ops import MultiScaleRoIAlign

    torch.manual_seed(0)
    backbone = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2, padding=1), torch.nn.ReLU(),
    )  # fmt: skip
    backbone.out_channels = 16
    options = {
        "num_classes": 3, "min_size": 64, "max_size": 64,
        "rpn_anchor_generator": AnchorGenerator(((16, 32),), ((0.5, 1.0, 2.0),)),
        "box_roi_pool": MultiScaleRoIAlign(["0"], 5, 2),
        "rpn_batch_size_per_image": 100_000, "box_batch_size_per_image": 100_000,
        "rpn_pre_nms_top_n_train": 200, "rpn_post_nms_top_n_train": 60,
        "rpn_pre_nms_top_n_test": 200, "rpn_post_nms_top_n_test": 60, "box_score_thresh": 0.0,
        "box_head": torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16 * 25, 32), torch.nn.ReLU()),
        "box_predictor": torchvision.models.detection.faster_rcnn.FastRCNNPredictor(32, 3),
    }  # fmt: skip
    options["num_classes"] = None
    if masks:
        mask_rcnn = torchvision.models.detection.mask_rcnn
        return MaskRCNN(
            backbone, **options, mask_roi_pool=MultiScaleRoIAlign(["0"], 6, 2),
            mask_head=mask_rcnn.MaskRCNNHeads(16, (16,), 1),
            mask_predictor=mask_rcnn.MaskRCNNPredictor(16, 16, 3),
        )  # fmt: skip
    return FasterRCNN(backbone, **options)


def pictures(dtype, device):
    generator = torch.Generator().manual_seed(1)
    images = [torch.rand(3, 64, 60, generator=generator, dtype=dtype).to(device) for _ in range(2)]
    targets = []
    for corner in (4.0, 12.0):
        box = torch.tensor([[corner, corner, corner + 25, corner + 30], [30, 8, 55, 40]], dtype=dtype)
        mask = torch.zeros(2, 64, 60, dtype=torch.uint8)
        for place, (x1, y1, x2, y2) in enumerate(box.int().tolist()):
            mask[place, y1:y2, x1:x2] = 1
        target = {"boxes": box, "labels": torch.tensor([1, 2]), "masks": mask}
        targets.append({name: value.to(device) for name, value in target.items()})
    return images, targets


@pytest.mark.parametrize("masks", [False, True], ids=["Faster R-CNN", "Mask R-CNN"])
def test_detection(torchvision, musa, masks):
    """Losses, gradients and detections in float64, where no rounding changes which boxes are chosen."""
    results = {}
    for device in ("cpu", "musa"):
        model = detector(torchvision, masks).double().to(device)
        images, targets = pictures(torch.float64, device)
        losses = model(images, targets)
        sum(losses.values()).backward()
        model.eval()
        with torch.no_grad():
            found = model(images)
        results[device] = (
            {name: loss.item() for name, loss in losses.items()},
            {name: parameter.grad.cpu() for name, parameter in model.named_parameters()},
            [{name: value.cpu() for name, value in one.items()} for one in found],
        )
    (losses, grads, found), (here, grads_here, found_here) = results["cpu"], results["musa"]
    assert here == pytest.approx(losses, rel=1e-9) and len(losses) == (5 if masks else 4)
    for name, grad in grads.items():
        assert grad.abs().max() > 0, name
        torch.testing.assert_close(grads_here[name], grad, atol=1e-9, rtol=1e-7)
    assert all(len(one["boxes"]) > 0 for one in found)
    for one, other in zip(found_here, found, strict=True):
        assert one.keys() == other.keys()
        for name in other:
            torch.testing.assert_close(one[name], other[name], atol=1e-8, rtol=1e-7)


def test_detection_trains_under_autocast(torchvision, musa):
    model = detector(torchvision, True).to("musa")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    images, targets = pictures(torch.float32, "musa")
    totals = []
    for _ in range(8):
        optimizer.zero_grad()
        with torch.autocast("musa", dtype=torch.bfloat16):
            total = sum(model(images, targets).values())
        total.backward()
        optimizer.step()
        totals.append(total.item())
    assert totals[-1] < 0.8 * totals[0], totals


def losses_of(model, device, steps=3):
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4, 3, 64, 64, generator=generator).to(device)
    labels = torch.tensor([0, 1, 2, 3], device=device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5"])
def test_models_train_as_on_the_cpu(torchvision, musa, name):
    losses = []
    for device in ("cpu", "musa"):
        torch.manual_seed(0)
        model = torchvision.models.get_model(name, num_classes=4)
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0  # devices have random numbers of their own
        losses.append(losses_of(model, device))
    # Batch normalisation of four images amplifies roundings.
    assert losses[1] == pytest.approx(losses[0], rel=2e-2)


@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224"])
def test_models_of_timm_train_as_on_the_cpu(torchvision, musa, name):
    if importlib.util.find_spec("timm") is None:
        skips.skip_permanently("timm")
    import timm

    size = {"img_size": 64} if name.startswith("vit") else {}
    losses = []
    for device in ("cpu", "musa"):
        torch.manual_seed(0)
        losses.append(losses_of(timm.create_model(name, num_classes=4, **size), device))
    assert losses[1] == pytest.approx(losses[0], rel=2e-2)
