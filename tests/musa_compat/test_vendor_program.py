# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An unmodified program for the vendor's torch_musa builds its extension and trains on two devices."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_python
from tests.musa_compat.table import README, headers

pytestmark = [pytest.mark.once, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "vendor_program"


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess:
    return run_python(*command, folder=folder, timeout=580, **environment)


@pytest.mark.full  # two files with torch's headers take a minute to compile
def test_it_builds_and_trains_on_two_devices(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copytree(PROGRAM, program)
    built = run(program, "setup.py", "build_ext", "--build-lib", "lib", TORCH_MUSA_ARCH_LIST="31")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "SimplePorting is deprecated" in built.stderr
    files = {path.name for path in (program / "csrc_musa").iterdir()}
    assert files == {"binding.cpp", "scaled_relu.muh", "scaled_relu_cuda.mu"}

    launch = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "--local-addr=127.0.0.1")
    trained = run(program, *launch, "train.py", "--extension", "lib")
    assert trained.returncode == 0, trained.stdout + trained.stderr
    lines = dict(line.split(" ", 1) for line in trained.stdout.splitlines())
    assert lines["arch"] == "31 ranks 2"
    first, last = map(float, lines["losses"].split())
    assert last < 0.5 * first
    assert lines["ranks"] == "agree True"
    assert re.fullmatch(r"rows [1-9]\d* memory True", lines["device"])


def test_without_the_pack_the_error_names_the_extra(tmp_path: Path) -> None:
    shutil.copytree(PROGRAM, tmp_path / "program")
    # Imported at the start of each interpreter, it hides the pack and its distribution from the metadata.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\n"
        "select, distribution = metadata.EntryPoints.select, metadata.distribution\n"
        "def selected(self, **parameters):\n"
        "    found = select(self, **parameters)\n"
        "    return metadata.EntryPoints(each for each in found if each.dist.name != 'musa-compat')\n"
        "def known(name):\n"
        "    if name == 'musa-compat':\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return distribution(name)\n"
        "metadata.EntryPoints.select, metadata.distribution = selected, known\n"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    for command in (("setup.py", "build_ext"), ("train.py", "--extension", "lib")):
        done = run(tmp_path / "program", *command, PYTHONPATH=path)
        assert done.returncode == 1
        assert "needs musa-compat (the extra torch-musa[compat]), which is not installed" in done.stderr
        assert "Fix: " in done.stderr


@pytest.mark.full
def test_all_headers_compile(tmp_path: Path) -> None:
    includes = "".join(f'#include "{name}"\n' for name in headers(README.read_text()))
    source = (
        f"{includes}"
        "static_assert(sizeof(at::musa::MUSAGuard) == sizeof(c10::musa::MUSAGuard));\n"
        "int streams() { return int(c10::musa::getCurrentMUSAStream().device_index()); }\n"
    )
    (tmp_path / "all.mu").write_text(source)
    code = (
        "from torch_musa.utils.musa_extension import load\n"
        f"load('all_headers', [{str(tmp_path / 'all.mu')!r}], build_directory={str(tmp_path)!r}, "
        "is_python_module=False)\n"
    )
    done = run(tmp_path, "-c", code, TORCH_MUSA_ARCH_LIST="31")
    assert done.returncode == 0, done.stdout + done.stderr
