# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The example that `dev.py demo` runs: it learns, and writes the plot and the checkpoint that it promises."""

import json

import pytest
import torch
from torch.utils.data import TensorDataset

from examples import train_digits
from tests.harness.device import DEVICE


def train(out, *arguments: str) -> dict:
    assert train_digits.main(["--device", DEVICE, "--out", str(out), *arguments]) == 0
    return json.loads((out / "train_digits.json").read_text())


def test_the_network_reads_handwriting_and_leaves_plot_and_checkpoint(tmp_path, capsys):
    figures = train(tmp_path)
    assert figures["accuracy"] >= 0.97
    assert figures["device"] == DEVICE
    assert figures["losses"][-1] < 0.1 * figures["losses"][0]
    assert capsys.readouterr().out.splitlines()[-1] == f"test accuracy: {figures['accuracy']:.2%}"
    plot = (tmp_path / figures["plot"]).read_bytes()
    assert plot.startswith(b"\x89PNG") and len(plot) > 10_000
    saved = torch.load(tmp_path / figures["checkpoint"], map_location="cpu")
    on_cpu = train_digits.DigitsNet()
    on_cpu.load_state_dict(saved["model"])
    _, test_set = train_digits.load_data(seed=0)
    loader = torch.utils.data.DataLoader(test_set, batch_size=256)
    # For one image in 360, the logits of two digits may be so close that rounding decides.
    assert train_digits.evaluate(on_cpu, loader, "cpu") == pytest.approx(figures["accuracy"], abs=1.5 / 360)


def test_the_seed_decides_the_result(tmp_path):
    first, second, other = (
        train(tmp_path / name, "--epochs", "2", "--seed", seed)["losses"]
        for name, seed in (("first", "3"), ("second", "3"), ("other", "4"))
    )
    assert first == second
    assert first != other


def test_labels_without_meaning_are_not_learned(tmp_path, monkeypatch):
    def shuffled(seed, load=train_digits.load_data):
        tensors = [dataset.tensors for dataset in load(seed)]
        return [TensorDataset(images, labels[torch.randperm(len(labels))]) for images, labels in tensors]

    monkeypatch.setattr(train_digits, "load_data", shuffled)
    assert train(tmp_path, "--epochs", "2")["accuracy"] < 0.3


def test_a_checkpoint_that_loses_the_weights_is_noticed(tmp_path, monkeypatch):
    def load_blank(*args, **kwargs):
        return {"model": train_digits.DigitsNet().state_dict()}

    monkeypatch.setattr(train_digits.torch, "load", load_blank)
    with pytest.raises(RuntimeError, match="reloaded"):
        train(tmp_path, "--epochs", "3")


def test_an_epoch_count_below_one_is_refused(tmp_path):
    with pytest.raises(SystemExit):
        train(tmp_path, "--epochs", "0")
