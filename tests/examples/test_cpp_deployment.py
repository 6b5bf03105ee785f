# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The C++ deployment example: exported, configured, built and run by its README's own commands, against the
installed packages; its results are Python's on the CPU."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SOURCES = Path(__file__).parents[2] / "examples" / "cpp_deployment"
BATCH = 3

pytestmark = [pytest.mark.once, pytest.mark.slow]


def environment(**variables):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "CMAKE_GENERATOR": "Ninja", **variables}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """The example's folder, copied, with the program and a model in `build`."""
    folder = shutil.copytree(SOURCES, tmp_path_factory.mktemp("deployment") / "cpp_deployment")
    (commands,) = re.findall(r"```bash\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    assert re.search(r"^image 1\n.*\n", done.stdout, re.MULTILINE), done.stdout
    return folder


def classify(deployed, *arguments, **variables):
    return subprocess.run(
        [deployed / "build" / "classify", *map(str, arguments)],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
    )


def export(deployed, out, way):
    command = [sys.executable, deployed / "export_model.py", "--model", "small", "--way", way]
    command += ["--out", out, "--batch", str(BATCH)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module", params=["script", "trace", "export"])
def exported(deployed, tmp_path_factory, request):
    """A folder with model.pt and input.pt, exported in one of the three ways."""
    out = tmp_path_factory.mktemp(request.param)
    export(deployed, out, request.param)
    return out


@pytest.fixture(scope="module")
def package(deployed, tmp_path_factory):
    """A folder with model.pt2, a package of AOTInductor, input.pt, and the same model as TorchScript."""
    out = tmp_path_factory.mktemp("package")
    export(deployed, out, "package")
    export(deployed, out, "script")  # from the same seed
    return out


def on_the_cpu(folder):
    extra = {"classes.txt": ""}
    model = torch.jit.load(folder / "model.pt", _extra_files=extra).eval()
    with torch.inference_mode():
        return model(torch.load(folder / "input.pt")), extra["classes.txt"].decode().splitlines()


MODES = [
    {"MUSA_EMULATOR_MODE": "inline"},
    {"MUSA_EMULATOR_MODE": "async"},
    {"MUSA_EMULATOR_MODE": "lazy"},
    {"MUSA_EMULATOR_MEMORY": "strict"},
]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: next(iter(mode.values())))
def test_logits_are_those_of_python_on_the_cpu(deployed, exported, mode, tmp_path):
    saved = tmp_path / "logits.pt"
    done = classify(deployed, exported / "model.pt", exported / "input.pt", "--save", saved, **mode)
    assert done.returncode == 0, done.stderr
    logits, _ = on_the_cpu(exported)
    # In batches of another size and on other threads, convolutions add up in another order.
    torch.testing.assert_close(torch.load(saved), logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES[:3], ids=lambda mode: next(iter(mode.values())))
@pytest.mark.parametrize("device", ["musa", "musa:1"])
def test_a_package_gives_the_logits_of_python_on_the_cpu(deployed, package, mode, device, tmp_path):
    saved, half = tmp_path / "logits.pt", tmp_path / "half.pt"
    images = torch.load(package / "input.pt")
    torch.save(images[:2].clone(), half)
    logits, classes = on_the_cpu(package)
    for given, count in ((package / "input.pt", BATCH), (half, 2)):
        arguments = [package / "model.pt2", given, "--save", saved, "--device", device, "--top", 1]
        done = classify(deployed, *arguments, **mode)
        assert done.returncode == 0, done.stderr
        assert f"  {classes[int(logits[0].argmax())]}\n" in done.stdout
        torch.testing.assert_close(torch.load(saved), logits[:count], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("device", "variables", "told"),
    [
        ("cpu", {}, "is compiled for musa, not for cpu. Fix: "),
        ("musa:7", {}, "Invalid device musa:7"),
        ("musa", {"MUSA_EMULATOR_MEMORY": "strict"}, "Fix: run the exported program instead"),
    ],
    ids=["cpu", "index", "memory"],
)
def test_a_package_that_cannot_run_names_the_cure(deployed, package, device, variables, told):
    done = classify(deployed, package / "model.pt2", package / "input.pt", "--device", device, **variables)
    assert done.returncode == 1
    assert told in done.stderr and done.stdout == ""


def test_the_best_classes_are_printed_by_name_in_order(deployed, exported):
    done = classify(deployed, exported / "model.pt", exported / "input.pt", "--top", 3, "--device", "musa:1")
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.splitlines()
    logits, classes = on_the_cpu(exported)
    shares, indices = logits.softmax(1).topk(3)
    expected = []
    for image in range(BATCH):
        expected.append(f"image {image}")
        expected += [
            f"  {100 * s:7.3f}%  {classes[i]}" for s, i in zip(shares[image].tolist(), indices[image])
        ]
    assert [row.split("%")[-1] for row in rows] == [row.split("%")[-1] for row in expected]
    printed = [float(row.split("%")[0]) for row in rows if "%" in row]
    assert printed == pytest.approx((100 * shares).flatten().tolist(), abs=0.01)
    assert re.fullmatch(r"\d+\.\d\d ms a batch of 3 on musa:1", last)


def test_the_kernels_run_on_the_device_and_not_on_the_cpu(deployed, exported, tmp_path):
    saved = tmp_path / "logits.pt"
    arguments = [exported / "model.pt", exported / "input.pt", "--save", saved]
    # A device that breaks at the first copy to it is noticed only by a program that uses it.
    broken = {"MUSA_EMULATOR_FAIL": "musaMalloc@1=musaErrorUnknown"}
    assert classify(deployed, *arguments, "--device", "cpu", **broken).returncode == 0
    done = classify(deployed, *arguments, **broken)
    assert done.returncode == 1
    assert "musaMalloc" in done.stderr and not done.stdout


def test_the_program_needs_no_python(deployed):
    needed = subprocess.run(
        ["ldd", deployed / "build" / "classify"], capture_output=True, text=True, check=True
    ).stdout
    names = [line.split()[0] for line in needed.splitlines()]
    assert "libmusa_runtime.so" in names and "libmusart.so" in names
    assert "not found" not in needed
    assert not [name for name in names if "python" in name]


@pytest.mark.parametrize(
    ("arguments", "variables", "status", "told"),
    [
        ([], {}, 2, "usage: classify MODEL INPUT"),
        (["model.pt", "input.pt", "--top", "none"], {}, 2, "--top needs a whole number"),
        (["model.pt", "input.pt", "--speed", "9"], {}, 2, "unknown option --speed"),
        (["model.pt", "absent.pt"], {}, 1, "cannot read absent.pt. To write it: python export_model.py"),
        (["absent.pt", "input.pt"], {}, 1, "cannot read absent.pt"),
        (["model.pt", "input.pt", "--device", "musa:7"], {}, 1, "Invalid device musa:7"),
        (["model.pt", "input.pt"], {"MUSA_VISIBLE_DEVICES": ""}, 1, "No musa device can be used"),
        (["model.pt", "input.pt", "--pack", "absent.so"], {}, 1, "op pack absent.so cannot be loaded"),
        (["input.pt", "input.pt"], {}, 1, "classify: "),
    ],
    ids=["nothing", "top", "option", "input", "model", "device", "hidden", "pack", "not-a-model"],
)
def test_what_is_wrong_is_named(deployed, arguments, variables, status, told):
    files = [deployed / "build" / name if name in ("model.pt", "input.pt") else name for name in arguments]
    done = classify(deployed, *files, **variables)
    assert done.returncode == status, done.stdout + done.stderr
    assert told in done.stderr
    assert done.stdout == ""
