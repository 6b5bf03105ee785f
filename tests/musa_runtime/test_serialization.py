# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saving, loading, copying and pickling of tensors and modules on the device."""

import copy
import io
import pickle

import pytest
import torch


@pytest.fixture
def checkpoint(device, tmp_path):
    torch.manual_seed(0)
    module = torch.nn.Linear(4, 3).to(device)
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(2, 4, device=device)).sum().backward()
    optimizer.step()
    state = {
        "model": module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": 7,
        "view": torch.arange(12.0, device=device).view(3, 4)[1:, ::2],
        "half": torch.ones(3, dtype=torch.bfloat16, device=device),
    }
    path = tmp_path / "checkpoint.pt"
    torch.save(state, path)
    return path, state


def _devices(value):
    if isinstance(value, torch.Tensor):
        return {value.device.type}
    if isinstance(value, dict):
        return set().union(*(_devices(item) for item in value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*(_devices(item) for item in value), set())
    return set()


def _equal(left, right):
    if isinstance(left, torch.Tensor):
        return torch.equal(left.cpu(), right.cpu())
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_equal, left, right))
    return left == right


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_checkpoint_is_loaded_to_its_device(checkpoint, device, weights_only):
    path, state = checkpoint
    loaded = torch.load(path, weights_only=weights_only)
    assert _devices(loaded["model"]) == {device}
    assert _equal(state, loaded)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "location",
    ["cpu", torch.device("cpu"), lambda storage, _: storage, lambda storage, _: storage.cpu()],
    ids=["string", "device", "callable that keeps", "callable that moves"],
)
def test_a_device_checkpoint_loads_on_the_cpu(checkpoint, location, mmap):
    path, state = checkpoint
    loaded = torch.load(path, map_location=location, mmap=mmap)
    assert _devices(loaded) == {"cpu"}
    assert _equal(state, loaded)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_cpu_checkpoint_loads_on_the_device(device, tmp_path, mmap):
    x = torch.arange(1000.0)
    torch.save({"x": x, "same": x[10:]}, tmp_path / "x.pt")
    for location in (
        device,
        torch.device(device),
        {"cpu": device},
        lambda storage, _: storage.to(device=device),
    ):
        loaded = torch.load(tmp_path / "x.pt", map_location=location, mmap=mmap)
        assert _devices(loaded) == {device}
        assert torch.equal(loaded["x"].cpu(), x)
        # Shared storages stay shared.
        loaded["x"].fill_(1)
        assert loaded["same"].cpu().eq(1).all()


def test_a_dictionary_maps_devices(two_devices, tmp_path):
    torch.save(torch.ones(3, device="musa:1"), tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt").device == torch.device("musa:1")
    moved = torch.load(tmp_path / "x.pt", map_location={"musa:1": "musa:0"})
    assert moved.device == torch.device("musa:0")
    assert torch.load(tmp_path / "x.pt", map_location="musa:0").device == torch.device("musa:0")


def test_the_error_for_a_checkpoint_of_a_missing_device(musa, tmp_path):
    class Elsewhere(io.BytesIO):
        pass

    buffer = Elsewhere()
    torch.save(torch.ones(2, device="musa"), buffer)
    renumbered = buffer.getvalue().replace(b"musa:0", b"musa:9")
    with pytest.raises(RuntimeError, match=r"(?i)musa|map_location"):
        torch.load(io.BytesIO(renumbered))
    assert torch.ones(1, device="musa").item() == 1


def test_the_legacy_format(device, tmp_path):
    x = torch.randn(5, device=device)
    torch.save(x, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    loaded = torch.load(tmp_path / "x.pt")
    assert loaded.device.type == device
    assert torch.equal(loaded.cpu(), x.cpu())


def test_deep_copies_keep_device_strides_sharing_and_gradients(device):
    x = torch.randn(4, 6, device=device)
    pair = {"whole": x, "part": x.t()[1:], "leaf": torch.ones(2, device=device, requires_grad=True)}
    (pair["leaf"] * 3).sum().backward()
    twin = copy.deepcopy(pair)
    assert twin["whole"].device == x.device
    assert twin["part"].stride() == pair["part"].stride()
    assert torch.equal(twin["leaf"].grad.cpu(), torch.full((2,), 3.0))
    twin["whole"].zero_()
    assert twin["part"].cpu().eq(0).all()
    assert x.cpu().abs().sum() > 0


def test_pickles(device):
    values = [
        torch.arange(5, device=device),
        torch.nn.Parameter(torch.ones(2, device=device)),
        torch.ones(3, dtype=torch.complex64, device=device).conj(),
        torch.zeros(2, 0, device=device),
        torch.device(device, 0),
        torch.ones(3, 4, device=device)[:, ::2],
    ]
    for value, twin in zip(values, pickle.loads(pickle.dumps(values))):
        assert type(twin) is type(value)
        if isinstance(value, torch.Tensor):
            assert twin.device == value.device
            assert torch.equal(twin.cpu(), value.cpu())


def test_storages_pickle_and_save(device, tmp_path):
    storage = torch.arange(6, dtype=torch.uint8, device=device).untyped_storage()
    torch.save(storage, tmp_path / "s.pt")
    loaded = torch.load(tmp_path / "s.pt", weights_only=False)
    assert loaded.device.type == device
    assert list(loaded.cpu()) == list(range(6))


def test_the_random_state_is_part_of_a_checkpoint(musa, tmp_path):
    torch.manual_seed(4)
    torch.rand(100, device="musa")
    torch.save(musa.get_rng_state(), tmp_path / "rng.pt")
    expected = torch.rand(10, device="musa")
    musa.manual_seed(0)
    musa.set_rng_state(torch.load(tmp_path / "rng.pt"))
    assert torch.equal(torch.rand(10, device="musa"), expected)


def test_scripted_modules_save_and_load(device, tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).to(device)
    x = torch.randn(2, 4, device=device)
    scripted = torch.jit.trace(module, x)
    scripted.save(str(tmp_path / "m.pt"))
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    assert torch.equal(loaded(x).cpu(), module(x).cpu())
    on_cpu = torch.jit.load(str(tmp_path / "m.pt"), map_location="cpu")
    torch.testing.assert_close(on_cpu(x.cpu()), module(x).cpu())
