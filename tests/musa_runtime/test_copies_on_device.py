# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies that convert or rearrange within a device: each provider gives the CPU's result, and only the one
that copies through the host waits."""

import warnings

import pytest
import torch

from tests.harness.device import host_can_address_device_memory
from tests.harness.naming import expression
from tests.harness.subprocesses import run_code
from tests.musa_runtime.test_copies import DTYPES

OP = "torch_musa::_copy_on_device"

ARRANGEMENTS = [
    lambda x: x,
    lambda x: x.mT,
    lambda x: x[1:, ::2],
    lambda x: x[:, :1].expand(6, 8),
    lambda x: x[..., 0],
]


@pytest.fixture(params=["mudnn", "host", "ported", "runtime"])
def provider(musa, request):
    """A provider of this process; copies that it declines go through the host by the runtime."""
    name = request.param
    offers = [row["provider"] for row in musa.ops.explain(OP)["candidates"]]
    if name in offers and (name != "host" or host_can_address_device_memory()):
        with musa.ops.prefer(OP, name):
            yield name
    else:
        # A provider that does not exist must not appear to be preferred.
        served = musa.ops.explain(OP)["provider"]
        assert served != name
        yield served


def _values(dtype):
    return torch.arange(48).remainder(2 if dtype is torch.bool else 16).to(dtype).view(6, 8)


@pytest.mark.parametrize("arrange", ARRANGEMENTS, ids=expression)
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_each_provider_converts_as_the_cpu(provider, source, arrange):
    host = _values(source)
    x = host.to("musa")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about dropped imaginary parts
        for target in DTYPES:
            expected = arrange(host).to(target, copy=True)
            converted = torch.empty(expected.shape, dtype=target, device="musa").copy_(arrange(x))
            bits = expected.contiguous().view(torch.uint8)
            assert torch.equal(converted.cpu().view(torch.uint8), bits), target


def test_fractions_and_negative_numbers_convert_as_on_the_cpu(provider):
    host = torch.tensor([-2.75, -1.0, -0.5, 0.0, 0.5, 1.25, 3.999, 1000.1], dtype=torch.float64)
    floating = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    for source in floating:
        for target in (*floating, torch.int64, torch.int16, torch.bool):
            x = host.to(source)
            assert torch.equal(x.to("musa").to(target).cpu(), x.to(target)), (source, target)


def test_targets_with_gaps_keep_the_elements_between(provider):
    x = torch.arange(48.0).view(6, 8)
    y = x.to("musa")
    x[1:, ::3] = -x[1:, 1::3][:, :3].double()
    y[1:, ::3] = -y[1:, 1::3][:, :3].double()
    assert torch.equal(y.cpu(), x)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_lazy_bits_of_either_side_are_resolved(provider, dtype):
    z = torch.complex(torch.arange(8.0), torch.arange(8.0) - 3).to(torch.complex64)
    x = z.to("musa")
    for source in (lambda t: t, torch.conj, torch._neg_view, lambda t: torch._neg_view(t.conj())):
        for target in (lambda t: t, torch.conj, torch._neg_view):
            expected, actual = torch.empty(8, dtype=dtype), torch.empty(8, dtype=dtype, device="musa")
            target(expected).copy_(source(z))
            target(actual).copy_(source(x))
            assert torch.equal(torch.view_as_real(actual.cpu()), torch.view_as_real(expected))
    part = torch.empty(8, device="musa").copy_(x.conj().imag)
    assert torch.equal(part.cpu(), z.conj().imag.resolve_neg())


def test_a_dropped_imaginary_part_gives_a_warning(musa):
    script = """
        import torch, warnings
        z = torch.ones(3, dtype=torch.complex64, device="musa")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.empty(3, device="musa").copy_(z)
        print(["imaginary" in str(warning.message) for warning in caught])
    """
    assert run_code(script, TORCH_MUSA_FALLBACK="allow").strip() == "[True]"


def test_more_elements_than_a_launch_takes_at_once(provider):
    x = torch.arange(300_000).remainder(1000)
    assert torch.equal(x.to("musa").view(300, 1000).t().to(torch.float16).cpu(), x.view(300, 1000).t().half())


def test_a_pack_never_waits_and_is_captured(musa, provider):
    x = torch.arange(64.0, device="musa").view(8, 8)
    before = musa.get_sync_debug_mode()
    musa.set_sync_debug_mode("error")
    try:
        if provider == "runtime":
            with pytest.raises(RuntimeError, match="through the host"):
                x.half()
            return
        half, columns = x.half(), x.t().contiguous()
    finally:
        musa.set_sync_debug_mode(before)
    graph = musa.MUSAGraph()
    with musa.graph(graph):
        half, columns = x.half(), x.t().contiguous()
    x.neg_()
    graph.replay()
    assert torch.equal(half.cpu(), x.cpu().half())
    assert torch.equal(columns.cpu(), x.cpu().t())


def test_a_copy_through_the_host_is_refused_in_a_graph(musa):
    x = torch.ones(4, 4, device="musa")
    with (
        musa.ops.prefer(OP, "runtime"),
        pytest.raises(RuntimeError, match="no pack serves these operands"),
        musa.graph(musa.MUSAGraph()),
    ):
        x.half()
