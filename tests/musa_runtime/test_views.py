# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Views share memory with their base: a write through one is visible through the other."""

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
