# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators exist once, in each order of imports: the device, torchvision with its library, or without
it."""

from __future__ import annotations

import pytest

from tests.harness import skips
from tests.harness.subprocesses import run_code, run_forked
from tests.musa_ops_vision import stand_ins

pytestmark = pytest.mark.once

USE = """
def use(device="musa"):
    dets = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]], device=device)
    kept = torch.ops.torchvision.nms(dets, dets[:, 0] + 1, 0.5)
    images = torch.ones(1, 2, 8, 8, device=device, requires_grad=True)
    rois = torch.tensor([[0.0, 1, 1, 5, 5]], device=device)
    out = torch.ops.torchvision.roi_align(images, rois, 1.0, 2, 2, 2, False)
    out.sum().backward()
    print(device, kept.tolist(), out.unique().tolist(), round(images.grad.sum().item(), 3))
"""
RESULT = "musa [2, 1] [1.0] 8.0"
DEVICE = "torch.ones(1, device='musa')\n"
LIBRARY = """
import ctypes, glob
for path in sorted(glob.glob({folder!r} + "/*.so*")):
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
"""
TORCHVISION = "import torchvision\nprint(torchvision.extension._has_ops())\n"


@pytest.fixture
def installed():
    if stand_ins.library() is None:
        skips.skip_permanently("torchvision")


def lines(code: str) -> list[str]:
    return run_code("import torch\n" + USE + code).splitlines()


def test_without_torchvision():
    code = "import sys\nsys.modules['torchvision'] = None\n" + DEVICE + "use()\n"
    assert lines(code) == [RESULT]


@pytest.mark.parametrize("first", ["device", "torchvision"])
def test_with_the_library(first, stand_in_folder):
    steps = [DEVICE, LIBRARY.format(folder=str(stand_in_folder)) + TORCHVISION]
    code = "".join(steps if first == "device" else reversed(steps))
    code += "use()\nuse('cpu')\nuse()\nprint(torch.ops.torchvision.nms.default._schema)"
    assert lines(code) == [
        "True", RESULT, RESULT.replace("musa", "cpu"), RESULT,
        "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    ]  # fmt: skip


def test_an_operator_that_a_program_holds_stays_usable(stand_in_folder):
    """The program gets the function before torchvision's library replaces the schema."""
    code = DEVICE + "nms = torch.ops.torchvision.nms\noverload = nms.default\nuse()\n"
    code += LIBRARY.format(folder=str(stand_in_folder)) + TORCHVISION
    code += """
dets = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10]], device="musa")
print(nms(dets, dets[:, 0], 0.5).tolist(), overload(dets, dets[:, 0], 0.5).tolist())
"""
    assert lines(code) == [RESULT, "True", "[1] [1]"]


@pytest.mark.parametrize("first", ["device", "torchvision"])
def test_torchvision_is_imported_where_its_library_cannot_be_loaded(first, installed):
    steps = [DEVICE, TORCHVISION]
    code = "".join(steps if first == "device" else reversed(steps)) + "use()\n"
    code += """
import torchvision.transforms.v2
from torchvision.models import resnet18
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    images = torch.empty(2, 8, 6, 6)
    print(torch.ops.torchvision.ps_roi_pool(images, torch.empty(3, 5), 1.0, 2, 2)[0].shape)
model = resnet18(num_classes=3).to("musa")
model(torch.randn(2, 3, 32, 32, device="musa")).sum().backward()
print(all(p.grad is not None for p in model.parameters()))
"""
    assert lines(code) == ["False", RESULT, "torch.Size([3, 2, 2, 2])", "True"]


def test_without_the_pack_torchvision_fails_as_before(installed):
    """Shows that the import in the test above works because of the pack."""
    done = run_forked("import torch, torchvision", TORCH_MUSA_DISABLE_PACKS="vision")
    assert done.returncode != 0 and "torchvision::nms does not exist" in done.stderr


def test_a_library_loaded_by_hand_after_the_schemas_is_refused_by_torch(stand_in_folder):
    """torch permits one definition, so a program must load the library before it uses the device."""
    load = f"torch.ops.load_library({str(stand_ins.library())!r})\n"
    prepare = "import torch\n" + LIBRARY.format(folder=str(stand_in_folder))
    done = run_forked(prepare + DEVICE + load)
    assert done.returncode != 0 and "torchvision" in done.stderr and "multiple times" in done.stderr
    done = run_forked(prepare + load + DEVICE + USE + "use()\n")
    assert done.returncode == 0 and done.stdout.splitlines() == [RESULT], done.stderr


def test_import_torch_imports_nothing_of_torchvision_and_no_kernel():
    code = """
import sys, torch
print([name for name in sys.modules if name.startswith(("torchvision", "musa_ops_vision"))])
"""
    assert run_code(code, fresh=True).strip() == "['musa_ops_vision', 'musa_ops_vision.startup']"
