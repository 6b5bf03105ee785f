# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The two torchvision programs, with small stand-ins for the data set and the pretrained model."""

import importlib
import sys

import pytest
import torch
from PIL import Image
from torch import nn

from examples import quickstart, resnet50_inference, train_cifar10
from tests.harness.device import DEVICE

MODULES = (train_cifar10, resnet50_inference, quickstart)


class NoisyPatterns(torch.utils.data.Dataset):
    """Each class is a pattern with noise, so that a few hundred images suffice to learn it."""

    def __init__(self, count: int, seed: int):
        self.labels = torch.arange(count) % 10
        patterns = torch.randn(10, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        noise = torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(seed))
        self.images = patterns[self.labels] + 0.3 * noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], int(self.labels[index])


def test_training_learns_saves_and_reports_each_class(tmp_path, capfd):
    def build(folder):
        assert folder == tmp_path / "data"
        return NoisyPatterns(400, seed=1), NoisyPatterns(50, seed=2)

    arguments = ["--device", DEVICE, "--epochs", "3", "--batch-size", "10", "--lr", "0.01"]
    out = tmp_path / "net.pth"
    status = train_cifar10.main([*arguments, "--data", str(tmp_path / "data"), "--out", str(out)], build)
    assert status == 0 and out.stat().st_size > 100_000
    printed = capfd.readouterr().out
    accuracies = {
        line.split()[1].rstrip(":"): float(line.split()[2].rstrip("%"))
        for line in printed.splitlines()
        if line.startswith("accuracy")
    }
    assert set(accuracies) == {*train_cifar10.CLASSES, "all"}
    assert accuracies["all"] > 90


def test_accuracy_counts_each_class_by_itself():
    class AlwaysCat(nn.Module):
        def forward(self, images):
            return torch.eye(10, device=images.device)[[3] * len(images)]

    loader = torch.utils.data.DataLoader(NoisyPatterns(40, seed=0), batch_size=7)
    shares = train_cifar10.accuracy_by_class(AlwaysCat(), loader, torch.device(DEVICE))
    assert shares.pop("cat") == 1.0
    assert shares.pop("all") == pytest.approx(0.1)
    assert set(shares.values()) == {0.0}


class MeanColour(nn.Module):
    """Classifies an image into one of three classes by its brightest channel."""

    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, images):
        return 10 * self.pool(images).flatten(1)


def preprocess(image):
    return (
        torch.tensor(list(image.tobytes()), dtype=torch.float32)
        .view(image.height, image.width, 3)
        .permute(2, 0, 1)
        / 255
    )


def test_images_are_classified_and_the_throughput_is_printed(tmp_path, capsys):
    files = []
    for name in ("red", "lime", "blue"):
        files.append(tmp_path / f"{name}.png")
        Image.new("RGB", (8, 8), name).save(files[-1])
    arguments = [*map(str, files), "--device", DEVICE, "--repeats", "2"]
    assert (
        resnet50_inference.main(arguments, lambda: (MeanColour(), preprocess, ["red", "lime", "blue"])) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1:4] == [str(file) for file in files]
    for start, name in zip((1, 5, 9), ("red", "lime", "blue")):
        share, best = lines[start].split()
        assert best == name and float(share.rstrip("%")) > 90
    speed, unit, _, device = lines[-1].removesuffix(", batch 3").split()
    assert float(speed) > 0 and unit == "images/s" and device == DEVICE


def test_a_file_that_is_no_image_is_named(tmp_path):
    text = tmp_path / "notes.jpg"
    text.write_text("no image")
    with pytest.raises(OSError, match=r"notes\.jpg"):
        resnet50_inference.read_images([text], preprocess)


@pytest.mark.once
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_programs_import_without_torchvision(module, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert importlib.reload(module).main


@pytest.mark.once
def test_without_torchvision_the_real_data_set_and_model_say_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    for ask in (lambda: train_cifar10.cifar10(tmp_path), resnet50_inference.resnet50):
        with pytest.raises(SystemExit, match=r"needs torchvision(.|\n)*Fix: .*pip install torchvision"):
            ask()


def test_the_quickstart_adds_on_the_device(capsys):
    assert quickstart.main(["--device", DEVICE]) == 0
    printed = capsys.readouterr().out
    assert "2.4000, 4.6000" in printed
    assert f"identity lives on {DEVICE}" in printed
