# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Classify images with ResNet-50 on a MUSA device and measure the throughput.

Needs torchvision, which downloads the weights (98 MB), and pillow.

python examples/resnet50_inference.py --device musa cat.jpg dog.jpg
"""

import argparse
import sys
import time
from pathlib import Path

import torch


def resnet50():
    """Returns the model, its preprocessing (PIL image to (3, 224, 224) float32) and the class names."""
    try:
        # Imported here, so that this module can be imported without torchvision.
        from torchvision.models import ResNet50_Weights, resnet50
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"{Path(__file__).name} needs torchvision and pillow: {error}.\n"
            f"Fix: {sys.executable} -m pip install torchvision pillow"
        ) from None

    weights = ResNet50_Weights.DEFAULT
    return resnet50(weights=weights), weights.transforms(), weights.meta["categories"]


def read_images(paths: list[Path], preprocess) -> torch.Tensor:
    """Returns a batch (len(paths), 3, H, W) of preprocessed images."""
    from PIL import Image

    images = []
    for path in paths:
        with Image.open(path) as image:
            images.append(preprocess(image.convert("RGB")))
    return torch.stack(images)


@torch.inference_mode()
def classify(model, batch: torch.Tensor, device: torch.device, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns probabilities and class indices, each (N, top), on the CPU."""
    probabilities = model(batch.to(device)).softmax(1)
    values, indices = probabilities.topk(top, dim=1)
    return values.cpu(), indices.cpu()


@torch.inference_mode()
def throughput(model, batch: torch.Tensor, device: torch.device, repeats: int) -> float:
    """Returns images per second for batches that are already on the device."""
    batch = batch.to(device)
    backend = torch.get_device_module(device)
    model(batch)  # the first call loads libraries and fills the allocator's cache
    backend.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        model(batch)
    backend.synchronize()
    return repeats * len(batch) / (time.perf_counter() - start)


def main(argv: list[str] | None = None, build_model=resnet50) -> int:
    """``build_model()`` returns the model, its preprocessing and the names of its classes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="+", type=Path, metavar="IMAGE")
    parser.add_argument("--device", default="musa")
    parser.add_argument("--top", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args(argv)

    device = torch.device(arguments.device)
    model, preprocess, names = build_model()
    model = model.eval().to(device)
    batch = read_images(arguments.images, preprocess)

    top = min(arguments.top, len(names))
    for path, values, indices in zip(arguments.images, *classify(model, batch, device, top)):
        print(path)
        for value, index in zip(values.tolist(), indices.tolist()):
            print(f"  {value:6.2%}  {names[index]}")
    print(
        f"{throughput(model, batch, device, arguments.repeats):.1f} images/s on {device}, batch {len(batch)}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
