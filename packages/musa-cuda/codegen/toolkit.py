# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Prints where CUDA, NCCL, CUPTI and cuFFT are, for CMake.

home;libcudart;nvcc;home of NCCL;headers of CUPTI;libcupti;headers of cuFFT;libcufft. All but the first three
are empty if not installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

MAJOR = 13  # of CUDA: other ones have other signatures


class ToolkitError(Exception):
    """There is no toolkit, or one of another version; the message says what to do."""


def homes(environment: Mapping[str, str]) -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if environment.get(name):
            yield Path(environment[name])
            return
    if nvcc := shutil.which("nvcc", path=environment.get("PATH")):
        yield Path(nvcc).resolve().parents[1]
    yield Path("/usr/local/cuda")


def package_folders(name: str) -> list[Path]:
    """Folders of a namespace package of NVIDIA's wheels, such as nvidia.nccl."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return []
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []


def cuda(environment: Mapping[str, str] = os.environ) -> tuple[Path, Path, Path]:
    """The toolkit's folder, its libcudart and its nvcc.

    Raises:
        ToolkitError: there is none of CUDA 13.
    """
    looked = []
    for home in homes(environment):
        header, nvcc = home / "include" / "cuda_runtime_api.h", home / "bin" / "nvcc"
        places = [home / "lib64", home / "lib", *package_folders("nvidia.cu13.lib")]
        found = [
            place / f"libcudart.so.{MAJOR}" for place in places if (place / f"libcudart.so.{MAJOR}").exists()
        ]
        missing = [name for name, there in ((header, header.is_file()), (nvcc, nvcc.is_file())) if not there]
        if not found:
            missing.append(Path(f"libcudart.so.{MAJOR} in lib64 or lib"))
        if not missing:
            version = next(
                line for line in header.read_text().splitlines() if line.startswith("#define CUDART_VERSION")
            )
            if int(version.split()[2]) // 1000 != MAJOR:
                raise ToolkitError(
                    f"CUDA at {home} is {version.split()[2]}; musa-cuda is written for CUDA {MAJOR}."
                )
            return home, found[0], nvcc
        looked.append(f"  {home}: no {', '.join(map(str, missing))}")
    raise ToolkitError(
        f"musa-cuda needs a CUDA {MAJOR} toolkit to be built, and none was found. Places searched:\n"
        + "\n".join(looked)
        + "\nLikely causes: CUDA is not installed, or nvcc is not on PATH.\n"
        "Fix: export CUDA_HOME=<directory of the CUDA toolkit>"
    )


def nccl(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder with include/nccl.h and lib/libnccl.so.2, or None."""
    chosen = environment.get("NCCL_HOME")
    for home in [Path(chosen)] if chosen else package_folders("nvidia.nccl"):
        if (home / "include" / "nccl.h").is_file() and (home / "lib" / "libnccl.so.2").exists():
            return home
    if chosen:
        raise ToolkitError(
            f"NCCL_HOME={chosen} has no include/nccl.h and lib/libnccl.so.2.\n"
            "Fix: unset NCCL_HOME, or pip install nvidia-nccl-cu13 and unset it"
        )
    return None


def library(home: Path, header: str, name: str) -> tuple[Path, Path] | None:
    """The folder of a header and the library, in a toolkit or among NVIDIA's wheels, or None."""
    tools = home / "extras" / "CUPTI"
    includes = [home / "include", tools / "include", *package_folders("nvidia.cu13.include")]
    libraries = [home / "lib64", home / "lib", tools / "lib64", *package_folders("nvidia.cu13.lib")]
    include = next((place for place in includes if (place / header).is_file()), None)
    found = next((place / name for place in libraries if (place / name).exists()), None)
    return (include, found) if include and found else None


def cupti(home: Path) -> tuple[Path, Path] | None:
    """The folder of cupti.h and the library, or None."""
    return library(home, "cupti.h", f"libcupti.so.{MAJOR}")


def cufft(home: Path) -> tuple[Path, Path] | None:
    """The folder of cufft.h and the library, or None."""
    return library(home, "cufft.h", "libcufft.so.12")


def main() -> int:
    try:
        found = cuda()
        none = (None, None)
        optional = (nccl(), *(cupti(found[0]) or none), *(cufft(found[0]) or none))
        print(";".join(str(part or "") for part in (*found, *optional)))
    except ToolkitError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
