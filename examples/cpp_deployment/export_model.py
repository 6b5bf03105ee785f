# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Exports a classifier for `classify`, the C++ program in this folder.

Writes a TorchScript file, model.pt, or with --way package an AOTInductor package, model.pt2, and input.pt to
--out, and prints the model's result on the CPU for comparison.

python examples/cpp_deployment/export_model.py --out build/deployment
"""

import argparse
import importlib.util
from pathlib import Path

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions with a shortcut; halves height and width when the number of channels grows."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride) if stride == 2 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class SmallNet(nn.Module):
    """Images (N, 3, H, W) to logits (N, 10): a small ResNet that needs no download."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(
            nn.Conv2d(3, 16, 3, 1, 1), Block(16, 16), Block(16, 32), Block(32, 64), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.blocks(x).flatten(1))


def small() -> tuple[nn.Module, list[str], tuple[int, ...]]:
    """Returns the model with random weights, the names of its classes, and the shape of an image."""
    model, shape = SmallNet(), (3, 32, 32)
    model(torch.rand(8, *shape))  # so that batch normalization statistics differ from 0 and 1
    return model, [f"class {chr(ord('A') + i)}" for i in range(10)], shape


def resnet50() -> tuple[nn.Module, list[str], tuple[int, ...]]:
    """Returns torchvision's ResNet-50 with its ImageNet weights (98 MB, downloaded once)."""
    from torchvision.models import ResNet50_Weights
    from torchvision.models import resnet50 as build

    weights = ResNet50_Weights.DEFAULT
    return build(weights=weights), weights.meta["categories"], (3, 224, 224)


MODELS = {"resnet50": resnet50, "small": small}


def as_torchscript(model: nn.Module, example: torch.Tensor, way: str) -> torch.jit.ScriptModule:
    """Returns the model as a TorchScript module.

    Args:
        way (str): `"script"` compiles the model's Python code; `"trace"` records its operations for
            `example`; `"export"` uses `torch.export`, then traces the exported graph. The latter two fix
            the input's shape.
    """
    if way == "script":
        return torch.jit.script(model)
    if way == "export":
        model = torch.export.export(model, (example,)).module()
    return torch.jit.trace(model, example)


def write_package(model: nn.Module, images: torch.Tensor, classes: list[str], path: Path) -> None:
    """Compiles the model for musa, for batch sizes from 2 to 64, and writes it to `path` (.pt2)."""
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(model.to("musa"), (images.to("musa"),), dynamic_shapes=({0: batch},))
    metadata = {"classes.txt": "\n".join(classes)}
    torch._inductor.aoti_compile_and_package(
        program, package_path=str(path), inductor_configs={"aot_inductor.metadata": metadata}
    )


@torch.no_grad()
def export(out: Path, name: str, way: str, batch: int) -> torch.Tensor:
    """Writes the model and out/input.pt; returns the model's logits on the CPU, (batch, classes)."""
    torch.manual_seed(0)
    model, classes, shape = MODELS[name]()
    model.eval()
    images = torch.rand(batch, *shape)
    out.mkdir(parents=True, exist_ok=True)
    torch.save(images, out / "input.pt")
    logits = model(images)
    if way == "package":
        write_package(model, images, classes, out / "model.pt2")
    else:
        script = as_torchscript(model, images, way)
        torch.jit.save(script, out / "model.pt", _extra_files={"classes.txt": "\n".join(classes)})
    return logits


def main(argv: list[str] | None = None) -> int:
    default = "resnet50" if importlib.util.find_spec("torchvision") else "small"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--model", choices=sorted(MODELS), default=default)
    parser.add_argument("--way", choices=("script", "trace", "export", "package"), default="script")
    parser.add_argument("--batch", type=int, default=2)
    arguments = parser.parse_args(argv)

    logits = export(arguments.out, arguments.model, arguments.way, arguments.batch)
    for number, row in enumerate(logits.softmax(1)):
        share, index = row.max(0)
        print(f"image {number}: class {int(index)} with {share:.3%} on the CPU")
    written = "model.pt2" if arguments.way == "package" else "model.pt"
    print(f"{arguments.model}: wrote {arguments.out / written} and {arguments.out / 'input.pt'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
