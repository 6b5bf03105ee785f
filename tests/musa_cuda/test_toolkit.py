# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The folders in which the build searches for CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.musa_cuda import conftest  # noqa: F401 - puts codegen on the path

pytestmark = pytest.mark.once


def home(folder: Path, version: int = 13000) -> Path:
    for name in ("include", "bin", "lib64"):
        (folder / name).mkdir(parents=True)
    (folder / "include" / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION {version}\n")
    (folder / "bin" / "nvcc").touch()
    (folder / "lib64" / "libcudart.so.13").touch()
    return folder


def test_cuda_home_names_the_toolkit(tmp_path: Path) -> None:
    from codegen import toolkit

    chosen = home(tmp_path / "cuda")
    assert toolkit.cuda({"CUDA_HOME": str(chosen)}) == (
        chosen, chosen / "lib64" / "libcudart.so.13", chosen / "bin" / "nvcc",
    )  # fmt: skip


@pytest.mark.parametrize("missing", ["include/cuda_runtime_api.h", "bin/nvcc", "lib64/libcudart.so.13"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    from codegen import toolkit

    chosen = home(tmp_path / "cuda")
    (chosen / missing).unlink()
    with pytest.raises(toolkit.ToolkitError, match=rf"{Path(missing).name}[\s\S]*Fix: export CUDA_HOME"):
        toolkit.cuda({"CUDA_HOME": str(chosen)})


def test_another_version_is_refused(tmp_path: Path) -> None:
    from codegen import toolkit

    with pytest.raises(toolkit.ToolkitError, match="12040; musa-cuda is written for CUDA 13"):
        toolkit.cuda({"CUDA_HOME": str(home(tmp_path / "cuda", 12040))})


def test_a_wrong_nccl_is_refused_and_a_missing_one_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from codegen import toolkit

    with pytest.raises(toolkit.ToolkitError, match="NCCL_HOME"):
        toolkit.nccl({"NCCL_HOME": str(tmp_path)})
    monkeypatch.setattr(toolkit, "package_folders", lambda name: [])
    assert toolkit.nccl({}) is None
