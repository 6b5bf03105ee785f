# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Real CUDA extensions, with --full and from the folder in MUSA_CUDA_EXTENSIONS, and their runner's
verdicts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.skips import skip_permanently
from tests.musa_port import real_extension_cases as cases
from tests.musa_port import real_extensions as real

pytestmark = pytest.mark.once


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("extension", real.EXTENSIONS, ids=lambda extension: extension.name)
def test_a_real_extension_computes_as_the_cpu(extension: real.Extension, tmp_path: Path) -> None:
    folder = os.environ.get(real.FOLDER)
    if folder is None or not (Path(folder) / extension.name).is_dir():
        skip_permanently("extensions", extension.origin)
    result = real.run(extension, Path(folder), tmp_path)
    assert result.built and not result.wrong and not result.reason, real.table([result])
    assert result.right == result.cases > 0


def made(folder: Path, setup: str) -> Path:
    """A folder with an extension named "ours", whose setup.py compiles nothing."""
    (folder / "sources" / "ours" / "csrc").mkdir(parents=True)
    (folder / "sources" / "ours" / "csrc" / "ours.cu").write_text("// unchanged\n")
    text = f"{real.IMPORT[0]} BuildExtension, CUDAExtension\n__version__ = '1.2'\n{setup}\n"
    (folder / "sources" / "ours" / "setup.py").write_text(text)
    return folder / "sources"


OURS = real.Extension("ours", "this file", {"right_and_wrong": "itself"})


def test_a_case_is_wrong_if_it_raises() -> None:
    import torch

    comparison = cases.Comparison()
    with comparison.case("fine", torch.float32):
        pass
    with comparison.case("another value"):
        torch.testing.assert_close(torch.ones(1), torch.zeros(1))
    with comparison.case("on the host"):
        cases.same(torch.ones(1), torch.ones(1))
    assert comparison.right == 1 and list(comparison.wrong) == ["another value", "on the host"]
    assert "the result is on cpu" in comparison.wrong["on the host"]


def test_an_extension_that_does_not_build_is_not_compared(tmp_path: Path) -> None:
    folder = made(tmp_path, "raise RuntimeError('no compiler for this')")
    result = real.run(OURS, folder, tmp_path)
    assert (result.built, result.cases, result.version) == (False, 0, "1.2")
    assert result.reason == "not built: RuntimeError: no compiler for this"
    assert "ours            1.2        no     0/0  not built" in real.table([result])


def test_a_build_that_changes_its_inputs_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path, "open('csrc/ours.cu', 'a').write('// changed')")
    result = real.run(OURS, folder, tmp_path)
    assert not result.built and result.reason == "the build changed its inputs: csrc/ours.cu"
    assert (folder / "ours" / "csrc" / "ours.cu").read_text() == "// unchanged\n"


def test_cases_that_cannot_run_are_a_reason_and_not_a_success(tmp_path: Path) -> None:
    folder = made(tmp_path, "")
    result = real.run(OURS, folder, tmp_path)
    assert result.built and result.cases == 0 and "right_and_wrong" in result.reason
    assert result.changed_lines == 1


def test_another_version_of_an_extension_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path, "")
    (folder / "ours" / "setup.py").write_text("import torch.utils.cpp_extension\n")
    with pytest.raises(ValueError, match="another version of the extension"):
        real.run(OURS, folder, tmp_path)


def test_a_missing_extension_is_named(tmp_path: Path) -> None:
    assert real.run(OURS, tmp_path, tmp_path).reason.startswith("not run: there is no ours")


def test_the_cases_of_each_extension_exist() -> None:
    assert all(hasattr(cases, name) for extension in real.EXTENSIONS for name in extension.cases)
