# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""safetensors: files are read to musa and written from it."""

from __future__ import annotations

import pytest
import safetensors
import safetensors.torch
import torch


def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    kinds = (torch.float32, torch.bfloat16, torch.int64, torch.bool)
    return {str(kind): (torch.randn(3, 4) * 3).to(kind) for kind in kinds}


@pytest.mark.parametrize("place", ["musa", "musa:0", "musa:1", 0])
def test_load_file(place, both, tmp_path):
    path = tmp_path / "file.safetensors"
    safetensors.torch.save_file(tensors(), path)

    def program(device):
        found = safetensors.torch.load_file(path, device=place if device == "musa" else device)
        if device == "musa":
            index = 1 if place == "musa:1" else 0
            assert all(tensor.device == torch.device("musa", index) for tensor in found.values())
        return {name: tensor.clone() + 0 for name, tensor in found.items() if tensor.dtype != torch.bool}

    both(program)


def test_tensors_of_the_device_are_written_and_read_by_slices(both, tmp_path):
    def program(device):
        path = tmp_path / f"{device}.safetensors"
        held = {name: tensor.to(device) for name, tensor in tensors().items()}
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in held.items()}, path)
        with safetensors.safe_open(path, framework="pt", device=device) as file:
            parts = [file.get_slice(str(torch.float32))[:2, 1:], file.get_tensor(str(torch.bfloat16))]
        return [part * 2 for part in parts]

    both(program)


def test_a_module_is_saved_and_loaded_on_the_device(both, tmp_path):
    def program(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).to(device)
        model(torch.randn(8, 4).to(device))
        path = str(tmp_path / f"{device}.safetensors")
        safetensors.torch.save_model(model, path)
        other = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).to(device)
        safetensors.torch.load_model(other, path, device=device)
        return other.eval()(torch.ones(2, 4).to(device))

    both(program)
