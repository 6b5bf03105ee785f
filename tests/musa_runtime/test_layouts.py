# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Sparse, quantized and nested tensors."""

import pytest
import torch

COMPRESSED = {
    "csr": (torch.sparse_csr, None),
    "csc": (torch.sparse_csc, None),
    "bsr": (torch.sparse_bsr, (2, 2)),
    "bsc": (torch.sparse_bsc, (2, 2)),
}


@pytest.fixture
def dense():
    torch.manual_seed(0)
    return torch.randn(6, 8) * (torch.rand(6, 8) > 0.6)


def test_a_coo_tensor_is_built_on_the_device(device):
    x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3), device=device)
    assert x.device.type == device
    assert (x.layout, x._nnz(), x.is_coalesced()) == (torch.sparse_coo, 3, False)
    assert x.coalesce()._nnz() == 2
    assert x.to_dense().cpu().tolist() == [[0, 0, 3], [9, 0, 0]]


def test_coo_tensors_move_convert_and_compute(device, dense):
    sparse = dense.to(device).to_sparse()
    assert torch.equal(sparse.to_dense().cpu(), dense)
    assert torch.equal(sparse.cpu().to_dense(), dense)
    assert torch.equal(dense.to_sparse().to(device).to_dense().cpu(), dense)
    for f in (
        lambda x: x + x,
        lambda x: x * 2,
        lambda x: x.neg(),
        lambda x: x.sin(),
        lambda x: x.t(),
        lambda x: x.sum(0).to_dense() if x.is_sparse else x.sum(0),
        lambda x: x.double(),
        lambda x: x.clone(),
        lambda x: x.pow(2),
        lambda x: torch.cat([x, x]),
        lambda x: x.index_select(0, torch.tensor([2, 0], device=x.device)),
        lambda x: x.transpose(0, 1),
        lambda x: x.unsqueeze(0),
    ):
        expected, actual = f(dense), f(sparse)
        actual = actual.to_dense() if actual.is_sparse else actual
        assert actual.device.type == device
        torch.testing.assert_close(actual.cpu(), expected)


def test_sparse_matrix_products(device, dense):
    right = torch.randn(8, 5)
    sparse = dense.to(device).to_sparse()
    torch.testing.assert_close(torch.sparse.mm(sparse, right.to(device)).cpu(), dense @ right)
    torch.testing.assert_close((sparse @ right.to(device)).cpu(), dense @ right)
    torch.testing.assert_close((sparse @ sparse.t()).to_dense().cpu(), dense @ dense.t())
    torch.testing.assert_close(
        torch.sparse.addmm(torch.ones(6, 5, device=device), sparse, right.to(device)).cpu(), dense @ right + 1
    )


def test_gradients_flow_through_sparse_tensors(device, dense):
    values = torch.ones(3, device=device, requires_grad=True)
    sparse = torch.sparse_coo_tensor([[0, 1, 2], [0, 1, 2]], values, (3, 3), device=device)
    (torch.sparse.mm(sparse, torch.full((3, 2), 2.0, device=device))).sum().backward()
    assert values.grad.cpu().tolist() == [4, 4, 4]


def test_embedding_gradients_are_sparse_and_an_optimizer_takes_them(device):
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(10, 3, sparse=True).to(device)
    before = embedding.weight.detach().clone()
    optimizer = torch.optim.SparseAdam(embedding.parameters(), lr=0.1)
    embedding(torch.tensor([1, 3, 3], device=device)).sum().backward()
    assert embedding.weight.grad.is_sparse
    optimizer.step()
    changed = (embedding.weight.detach() != before).any(1).cpu().nonzero().flatten().tolist()
    assert changed == [1, 3]


@pytest.mark.parametrize(("layout", "blocksize"), list(COMPRESSED.values()), ids=list(COMPRESSED))
def test_compressed_tensors_move_convert_and_compute(device, dense, layout, blocksize):
    expected = dense.to_sparse(layout=layout, blocksize=blocksize)
    made = dense.to(device).to_sparse(layout=layout, blocksize=blocksize)
    moved = expected.to(device)
    for sparse in (made, moved):
        assert (sparse.layout, sparse.device.type) == (layout, device)
        assert torch.equal(sparse.to_dense().cpu(), dense)
        assert torch.equal(sparse.values().cpu(), expected.values())
        assert torch.equal(sparse.cpu().to_dense(), dense)
        assert torch.equal(sparse.to_sparse_coo().to_dense().cpu(), dense)
        assert torch.equal(sparse.clone().to_dense().cpu(), dense)
        assert torch.equal(sparse.sin().to_dense().cpu(), expected.sin().to_dense())
        assert torch.equal((sparse * 2).to_dense().cpu(), dense * 2)


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_products_with_compressed_matrices(device, dense, layout):
    sparse = dense.to(device).to_sparse(layout=COMPRESSED[layout][0])
    right = torch.randn(8, 3)
    torch.testing.assert_close((sparse @ right.to(device)).cpu(), dense @ right)
    torch.testing.assert_close((sparse @ right[:, 0].to(device)).cpu(), dense @ right[:, 0])


def test_a_csr_tensor_is_built_on_the_device(device):
    x = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2), device=device)
    assert x.to_dense().cpu().tolist() == [[0, 5], [6, 0]]
    assert "sparse_csr" in repr(x)


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32], ids=str)
def test_quantized_tensors(device, dtype):
    x = torch.linspace(-2, 2, 20)
    zero = 0 if dtype is not torch.quint8 else 128
    expected = torch.quantize_per_tensor(x, 0.05, zero, dtype)
    for quantized in (torch.quantize_per_tensor(x.to(device), 0.05, zero, dtype), expected.to(device)):
        assert quantized.device.type == device
        assert (quantized.q_scale(), quantized.q_zero_point()) == (0.05, zero)
        assert torch.equal(quantized.int_repr().cpu(), expected.int_repr())
        assert torch.equal(quantized.dequantize().cpu(), expected.dequantize())
        assert torch.equal(quantized.cpu().int_repr(), expected.int_repr())
        assert torch.equal(quantized.view(4, 5)[1:].dequantize().cpu(), expected.view(4, 5)[1:].dequantize())
        assert torch.equal(quantized.clone().int_repr().cpu(), expected.int_repr())


def test_quantized_per_channel(device):
    x = torch.randn(3, 4)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3, dtype=torch.int64)
    expected = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    actual = torch.quantize_per_channel(x.to(device), scales.to(device), zeros.to(device), 0, torch.qint8)
    assert torch.equal(actual.dequantize().cpu(), expected.dequantize())
    assert torch.equal(actual.q_per_channel_scales().cpu(), expected.q_per_channel_scales())


def test_fake_quantization_trains(device):
    x = torch.linspace(-1, 1, 9, device=device, requires_grad=True)
    out = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7)
    out.sum().backward()
    expected = torch.fake_quantize_per_tensor_affine(x.detach().cpu(), 0.1, 0, -8, 7)
    assert torch.equal(out.detach().cpu(), expected)
    assert x.grad.cpu().tolist() == [0, 1, 1, 1, 1, 1, 1, 0, 0] or x.grad.sum().item() > 0


def _parts():
    torch.manual_seed(0)
    return [torch.randn(2, 4), torch.randn(3, 4), torch.randn(1, 4)]


def test_strided_nested_tensors(device):
    parts = _parts()
    for nested in (
        torch.nested.nested_tensor(parts, device=device),
        torch.nested.nested_tensor(parts).to(device),
        torch.nested.as_nested_tensor([part.to(device) for part in parts]),
    ):
        assert nested.device.type == device
        for part, twin in zip(parts, nested.unbind()):
            assert torch.equal(twin.cpu(), part)
        padded = torch.nested.to_padded_tensor(nested, 0.0)
        assert padded.shape == (3, 3, 4)
        weight = torch.randn(4, 2)
        for part, twin in zip(parts, torch.nn.functional.linear(nested, weight.t().to(device)).unbind()):
            torch.testing.assert_close(twin.cpu(), part @ weight)
        for part, twin in zip(parts, (nested * 2).cpu().unbind()):
            assert torch.equal(twin, part * 2)


def test_jagged_nested_tensors(device):
    parts = _parts()
    nested = torch.nested.nested_tensor(parts, device=device, layout=torch.jagged, requires_grad=True)
    out = torch.nn.functional.gelu(nested * 2)
    out.values().sum().backward()
    for part, twin in zip(parts, out.unbind()):
        torch.testing.assert_close(twin.detach().cpu(), torch.nn.functional.gelu(part * 2))
    assert nested.grad.values().shape == (6, 4)
    assert nested.to("cpu").device.type == "cpu"


def test_masked_tensors(device):
    masked = torch.masked.masked_tensor(
        torch.arange(4.0, device=device), torch.tensor([True, False, True, False], device=device)
    )
    assert masked.sum().get_data().item() == 2
