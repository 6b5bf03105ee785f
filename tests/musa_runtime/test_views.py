# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Views share memory with their base: a write through one is visible through the other."""

import re

import pytest
import torch

from tests.harness.naming import expression


def test_writing_the_imaginary_part_changes_the_complex_tensor(device):
    z = torch.zeros(4, dtype=torch.complex64, device=device)
    z.imag.fill_(3)
    z.real.add_(1)
    assert torch.equal(z.cpu(), torch.full((4,), 1 + 3j))


def test_view_as_real_writes_through(device):
    z = torch.zeros(2, 3, dtype=torch.complex64, device=device)
    torch.view_as_real(z)[..., 1] = 2
    assert z.cpu().imag.eq(2).all()


def test_view_as_complex_writes_through(device):
    x = torch.zeros(3, 2, device=device)
    torch.view_as_complex(x).fill_(1 + 2j)
    assert torch.equal(x.cpu(), torch.tensor([[1.0, 2.0]] * 3))


def test_unfold_writes_through(device):
    x = torch.zeros(8, device=device)
    x.unfold(0, 2, 4).fill_(5)
    assert x.cpu().tolist() == [5, 5, 0, 0, 5, 5, 0, 0]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:, ::2],
        lambda x: x.t(),
        lambda x: x.view(-1),
        lambda x: x.reshape(8, 3),
        lambda x: x.permute(1, 0),
        lambda x: x.diagonal(),
        lambda x: x.narrow(1, 2, 3),
        lambda x: x.select(0, 2),
        lambda x: x.unsqueeze(1),
        lambda x: x.flatten(),
        lambda x: x.as_strided((2, 2), (6, 1), 3),
        lambda x: x.split(2, dim=1)[1],
        lambda x: x.chunk(3, dim=1)[2],
        lambda x: x.unbind(1)[3],
        lambda x: x.detach(),
        lambda x: x.view(torch.int32),
        lambda x: x.movedim(0, 1),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.tensor_split(2)[1],
        lambda x: x.hsplit(2)[1],
        lambda x: x.unflatten(1, (2, 3)),
        lambda x: x.expand(2, 4, 6),
    ],
    ids=expression,
)
def test_filling_a_view_fills_exactly_that_part_of_the_base(device, view):
    reference = torch.arange(24.0).view(4, 6)
    base = reference.clone().to(device)
    touched, on_device = view(reference), view(base)
    assert on_device.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert (on_device.shape, on_device.stride(), on_device.storage_offset()) == (
        touched.shape,
        touched.stride(),
        touched.storage_offset(),
    )
    touched.zero_()
    on_device.zero_()
    assert torch.equal(base.cpu(), reference)


def test_a_write_to_the_base_is_visible_in_its_views(device):
    base = torch.zeros(4, 4, device=device)
    view = base[::2].t()
    base.fill_(7)
    assert view.cpu().eq(7).all()


def test_a_view_of_another_size_of_dtype_keeps_the_bytes(device):
    x = torch.arange(8, dtype=torch.int32, device=device)
    assert torch.equal(x.view(torch.int64).cpu(), torch.arange(8, dtype=torch.int32).view(torch.int64))
    assert x.view(torch.uint8).shape == (32,)


def test_views_survive_their_base(device):
    view = torch.arange(100.0, device=device)[10:20]
    churn = [torch.full((100,), -1.0, device=device) for _ in range(4)]
    assert view.cpu().tolist() == list(range(10, 20))
    del churn


def test_an_in_place_operation_on_a_view_advances_the_version_of_the_base(device):
    base = torch.ones(4, device=device)
    before = base._version
    base[:2].add_(1)
    assert base._version > before


def test_a_view_that_does_not_fit_is_refused(device):
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        torch.zeros(4, 6, device=device).t().view(24)


def test_as_strided_out_of_the_storage_is_refused(device):
    with pytest.raises(RuntimeError, match="storage"):
        torch.zeros(4, device=device).as_strided((3,), (4,))


def test_conj_and_neg_views_are_lazy_and_resolve(device):
    z = torch.randn(5, dtype=torch.complex64)
    moved = z.clone().to(device)
    conj = moved.conj()
    assert conj.is_conj()
    assert conj.data_ptr() == moved.data_ptr()
    assert torch.equal(conj.cpu().resolve_conj(), z.conj().resolve_conj())
    assert torch.equal(conj.resolve_conj().cpu(), z.conj().resolve_conj())
    imaginary = conj.imag
    assert imaginary.is_neg()
    assert torch.equal(imaginary.resolve_neg().cpu(), z.conj().imag.resolve_neg())
    conj.mul_(2)
    assert torch.equal(moved.cpu(), z * 2)


BASES = {
    "number": lambda x: x[3],
    "vector": lambda x: x[5:],
    "matrix": lambda x: x[:6].view(2, 3),
    "columns": lambda x: x[1:7].view(2, 3).t(),
    "gaps": lambda x: x.view(4, 6)[1:3, ::2],
    "expanded": lambda x: x[2:4].view(2, 1).expand(2, 3),
    "cube": lambda x: x.view(4, 1, 6),
    "empty": lambda x: x[:0].view(0, 3),
    "conjugate": lambda x: torch.view_as_complex(x.view(4, 3, 2)).conj(),
}
if hasattr(torch.Tensor, "refine_names"):  # until torch 2.12
    BASES["names"] = lambda x: x.view(4, 6).refine_names("rows", "columns")

_DIMS = range(-4, 4)
_ENDS = (None, -(2**63), -3, 0, 2, 2**63 - 1)
_SIZES = ((), (-1,), (3,), (0,), (2, 3), (-1, 3), (2, -1), (5, 2, 3), (-1, 2, 3), (4, 5, 6), (2, 4, 7, 6))
# Operators with their arguments, valid and invalid.
VIEWS = {
    "t": [()],
    "transpose": [(i, j) for i in _DIMS for j in _DIMS],
    "permute": [
        (dims,)
        for dims in ((), (0,), (-1,), (1, 0), (0, 1), (-1, 0), (0, 0), (0, -2), (0, 2), (2, 0, 1), (-1, 0, 1))
    ],
    "select": [(dim, index) for dim in _DIMS for index in (*range(-5, 5), -(2**63), 2**63 - 1)],
    "slice": [
        (dim, start, end, step)
        for dim in _DIMS
        for start in _ENDS
        for end in _ENDS
        for step in (-1, 0, 1, 2, 2**62)
    ],
    "unsqueeze": [(dim,) for dim in range(-6, 6)],
    "squeeze": [(dim,) for dim in _DIMS],
    "expand": [(size,) for size in _SIZES],
}


def layout_or_error(base, name, arguments):
    """The properties of a view, or the error that the operator raises."""
    overload = {"transpose": "int", "select": "int", "slice": "Tensor", "squeeze": "dim"}.get(name, "default")
    try:
        view = getattr(getattr(torch.ops.aten, name), overload)(base, *arguments)
    except (RuntimeError, IndexError) as error:
        return type(error), re.sub(r"(CPU|musa|torch\.)(\w*?)(Type|Tensor)\b", r"\2", str(error))
    assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert view.is_inference() == base.is_inference()
    assert base.is_inference() or view._version == base._version
    layout = view.shape, view.stride(), view.storage_offset()
    return layout, view.dtype, view.is_conj(), view._is_view(), getattr(view, "names", None)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", VIEWS)
def test_views_have_the_cpus_layout_or_its_error(device, name, base):
    values = torch.arange(24.0)
    on_host, on_device = BASES[base](values), BASES[base](values.to(device))
    on_device.zero_()  # changes the version, which views share
    on_host.zero_()
    for arguments in VIEWS[name]:
        expected = layout_or_error(on_host, name, arguments)
        assert layout_or_error(on_device, name, arguments) == expected, arguments


def shrunk(base, size):
    base.untyped_storage().resize_(size)
    return base


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("size", [0, 40])
def test_a_view_that_is_not_within_the_storage_is_refused(device, name, size):
    bases = [shrunk(torch.arange(24.0, device=device).view(4, 6).to(kind), size) for kind in ("cpu", device)]
    on_host, on_device = bases
    results = set()
    for arguments in VIEWS[name]:
        expected = layout_or_error(on_host, name, arguments)
        assert layout_or_error(on_device, name, arguments) == expected, arguments
        results.add(expected[0])
    assert RuntimeError in results


def test_offsets_and_strides_that_overflow_are_refused(device):
    for shape, strides in (((4, 0), (2**62, 1)), ((0, 4), (1, 2**62))):
        bases = [torch.empty_strided(shape, strides, device=kind) for kind in ("cpu", device)]
        for name, arguments in [
            ("select", (0, 2)),
            ("select", (1, 2)),
            ("slice", (0, 3, None, 1)),
            ("slice", (0, 0, 4, 2)),
        ]:
            expected, actual = (layout_or_error(base, name, arguments) for base in bases)
            assert actual[0] == expected[0], (shape, name, arguments)


def test_views_of_inference_mode(device):
    with torch.inference_mode():
        base = torch.arange(6.0, device=device).view(2, 3)
        for name, arguments in [("t", ()), ("select", (0, 1)), ("slice", (1, 0, 2, 1)), ("unsqueeze", (1,))]:
            assert layout_or_error(base, name, arguments) == layout_or_error(base.cpu(), name, arguments)


def test_gradients_flow_through_views(device):
    x = torch.arange(24.0, device=device).view(2, 3, 4).requires_grad_()
    view = x.transpose(0, 2)[1:, :, 0].t().unsqueeze(0).expand(2, 3, 3).permute(2, 0, 1)
    assert view._base is x or view._base is x._base
    (view * view).sum().backward()
    expected = torch.zeros(2, 3, 4)
    expected[0, :, 1:] = 4 * x.detach().cpu()[0, :, 1:]
    assert torch.equal(x.grad.cpu(), expected)
