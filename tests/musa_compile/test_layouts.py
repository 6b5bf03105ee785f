# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fake tensors of musa have the strides of the operators' real results. A graph that was compiled for other
strides fails where it uses them.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch
from torch._subclasses import FakeTensorMode

from tests.harness.parts import sample
from tests.harness.skips import needs_torch
from tests.musa_compile import layouts

# Without the leak check, which comes with the fixture `musa`: after the samples of view_as_complex 512 bytes
# stay allocated.
pytestmark = [pytest.mark.once, pytest.mark.usefixtures("compiler")]

_STATISTICS = (
    "in eval mode the saved statistics are of shape (0,), as on the CPU, whose kernel it is; the fake "
    "function of other devices gives them the shape (C,)"
)
# Operators whose results have another layout than fake tensors, with the reason. A closed list: each must
# differ, and no other may.
DIFFERENCES = {
    "nn_functional_pixel_shuffle": "channels_last is kept, as on the CPU, whose kernel it is; the fake "
    "function of other devices gives a contiguous result",
    "native_batch_norm": _STATISTICS,
    "_native_batch_norm_legit": _STATISTICS,
}

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def convolution_operands(dimensions, transposed, image_last, weight_last, device):
    """An image and a weight, each contiguous or with the channels last."""
    image, weight = torch.randn(2, 4, *[8] * dimensions), torch.randn(4, 4, *[3] * dimensions)
    operands = []
    for tensor, last in ((image, image_last), (weight, weight_last)):
        if last:
            # There is no memory format for one dimension: two are used, one of them of size 1.
            wide = tensor.unsqueeze(2) if dimensions == 1 else tensor
            wide = wide.contiguous(memory_format=FORMATS[wide.dim()])
            tensor = wide.squeeze(2) if dimensions == 1 else wide
        operands.append(tensor.to(device))
    return operands


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_convolutions_in_every_layout(dimensions, transposed):
    differing = []
    for image_last, weight_last in itertools.product((False, True), repeat=2):
        image, weight = convolution_operands(dimensions, transposed, image_last, weight_last, "musa")
        settings = (
            [1] * dimensions,
            [0] * dimensions,
            [1] * dimensions,
            transposed,
            [0] * dimensions,
            1,
        )
        result = torch.ops.aten.convolution(image, weight, None, *settings)
        gradients = torch.ops.aten.convolution_backward(
            torch.ones_like(result), image, weight, [4], *settings, [True, True, True]
        )
        with FakeTensorMode() as mode:
            fake = [mode.from_tensor(value) for value in (image, weight)]
            fake_result = torch.ops.aten.convolution(*fake, None, *settings)
            fake_gradients = torch.ops.aten.convolution_backward(
                torch.ones_like(fake_result), *fake, [4], *settings, [True, True, True]
            )
        real = layouts.layouts_of((result, gradients))
        faked = layouts.layouts_of((fake_result, fake_gradients))
        assert len(real) == 4
        if real != faked:
            differing.append((image_last, weight_last, real, faked))
    assert not differing


def test_a_convolution_keeps_channels_last():
    """Tests the rules for fake tensors: without them, the fake result is contiguous."""
    image = torch.randn(2, 3, 8, 8, device="musa").to(memory_format=torch.channels_last)
    weight = torch.randn(8, 3, 3, 3, device="musa")
    with FakeTensorMode() as mode:
        fake = torch.nn.functional.conv2d(mode.from_tensor(image), mode.from_tensor(weight))
    assert fake.is_contiguous(memory_format=torch.channels_last) and not fake.is_contiguous()


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.nonzero_static(x > 0, size=5),
        lambda x: torch.nonzero_static(x > 0, size=5).as_strided((10,), (1,)),
        lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1), "replicate").as_strided((40,), (2,)),
    ],
    ids=["nonzero_static", "its strides", "replicated border"],
)
def test_compiled_results_have_the_strides_of_eager_ones(program):
    """Rare layouts, which one sample in thirty of the sweep has."""
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).to("musa")
    eager, compiled = program(x), torch.compile(program)(x)
    assert torch.equal(compiled, eager) and compiled.stride() == eager.stride()


@pytest.fixture(scope="module")
def compared() -> Counter[str]:
    """Counts the samples of the sweep."""
    return Counter()


@pytest.mark.parametrize("provider", ["mudnn", "ported"])  # the first in the order
@pytest.mark.parametrize("name", sample(layouts.operators(), 40, always=DIFFERENCES))
def test_results_have_the_strides_of_fake_tensors(name, provider, compared):
    if name in DIFFERENCES:
        needs_torch("2.13", "this difference")
    with torch.musa.ops.prefer("*", provider):
        count, differences = layouts.compare(layouts.operators()[name])
    compared.update(samples=count, operators=count > 0)
    if name in DIFFERENCES:
        assert differences, "it no longer differs. Fix: remove it from DIFFERENCES"
    else:
        assert not differences


@pytest.mark.full
def test_the_sweep_compared_samples(compared):
    assert compared["operators"] > 800 and compared["samples"] > 25_000


def test_the_sweep_finds_a_difference():
    """The fake result of an operator has another layout."""

    class Op:
        def __call__(self, x):
            fake = isinstance(x, torch._subclasses.FakeTensor) and x.device.type == "musa"
            return x.t().contiguous().t() if fake else x.contiguous()

        def sample_inputs(self, device, dtype, requires_grad):
            return [torch.testing._internal.opinfo.core.SampleInput(torch.randn(3, 4))]

    count, differences = layouts.compare(Op())
    assert count == len(differences) == len(layouts.ARGUMENTS)
