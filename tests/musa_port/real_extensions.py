# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds real CUDA extensions by their own setup.py and compares their results with the CPU's.

    python -m tests.musa_port.real_extensions run FOLDER [--only NAME ...] [--work DIR] [--built]

FOLDER has one folder for each extension, named as in EXTENSIONS, with its sources from the origin in that
table. This repository has none of their text. They are built in copies below --work (default: a temporary
folder). With --built, copies that are already built are compared without another build. A run of all
extensions is recorded in build/records/cuda_extensions.json.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.harness import records

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "MUSA_CUDA_EXTENSIONS"  # the variable that names FOLDER for the tests

# The only change of a setup.py: the module that builds CUDA extensions.
IMPORT = ("from torch.utils.cpp_extension import", "from torch_musa.utils.cpp_extension import")


@dataclass(frozen=True)
class Extension:
    """An extension and its build."""

    name: str  # of its folder and its Python package
    origin: str  # of its sources
    cases: dict[str, str]  # functions of real_extension_cases -> their reference
    edits: tuple[tuple[str, str], ...] = (IMPORT,)  # of setup.py; each text must be found
    environment: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ("build_ext", "--inplace")
    left_out: str = ""  # parts that the cases do not compare, with the reason
    needs: dict[str, str] = field(default_factory=dict)  # folders beside the extension's, on the include path


APEX_MODULES = """
ext_modules = [one for one in ext_modules if one.name in ("amp_C", "fused_layer_norm_cuda")]"""
CPU = "its own CPU path"
EXTENSIONS = (
    Extension(
        "torch_scatter",
        "sdist torch-scatter 2.1.2 of the package index",
        {"torch_scatter": CPU},
        left_out="8- and 16-bit integers: its atomic operations are wrong for negative results",
        environment={"FORCE_ONLY_CUDA": "1"},
    ),
    Extension(
        "torch_cluster",
        "sdist torch-cluster 1.6.3 of the package index",
        {"torch_cluster": f"{CPU}; walks and clusters by what must hold of them"},
        environment={"FORCE_ONLY_CUDA": "1"},
    ),
    Extension(
        "torch_sparse",
        "sdist torch-sparse 0.6.18 of the package index",
        {"torch_sparse": CPU},
        environment={"FORCE_ONLY_CUDA": "1"},
    ),
    Extension(
        "torchvision",
        # Later versions use the stable ABI of torch 2.14.
        "github pytorch/vision at 85a1dccc8b7d7bf1893fd10e1be14d017480c064",
        {"torchvision": CPU},
        environment={"FORCE_CUDA": "1"},
    ),
    Extension(
        "causal_conv1d",
        "github Dao-AILab/causal-conv1d at 0d2252d161f25f7907bbd05985c08ab98d255874",
        {"causal_conv1d": "sums in float32 by torch"},
        left_out="lengths not a multiple of 8: muAlg aligns storage to 8 bytes, the kernels to 16",
        environment={"CAUSAL_CONV1D_FORCE_BUILD": "TRUE", "MUSA_PORT_CUDA_RELEASE": "11.8"},
        needs={"muAlg": "github MooreThreads/muAlg", "muThrust": "github MooreThreads/muThrust"},
    ),
    Extension(
        "apex",
        "github NVIDIA/apex at 6424da3b4faa6c8f062da4a48c424fff3f02d42d",
        {"amp_c": "norms and Adam of torch", "fused_layer_norm": "layer_norm and rms_norm of torch"},
        left_out="its other modules: of those, mlp and fused_dense need a handle of cuBLAS from torch",
        # The check compares the version of CUDA, which a CPU build of torch does not have.
        edits=(
            IMPORT,
            ("    check_cuda_torch_binary_vs_bare_metal(CUDA_HOME)\n", ""),
            ("\nsetup(\n", APEX_MODULES + "\nsetup(\n"),
        ),
        environment={"APEX_CUDA_EXT": "1"},
    ),
    Extension(
        "pytorch3d",
        "github facebookresearch/pytorch3d at 9381c4016376345bb795b97c45a6c2de66db354a",
        {"pytorch3d": CPU},
        # Its setup.py names BuildExtension through the module torch.
        edits=(
            IMPORT,
            ("import torch\n", "import torch, torch_musa.utils.cpp_extension\n"),
            ("(torch.utils.cpp_extension.BuildExtension)", "(torch_musa.utils.cpp_extension.BuildExtension)"),
            ("= torch.utils.cpp_extension.BuildExtension", "= torch_musa.utils.cpp_extension.BuildExtension"),
        ),
        environment={"FORCE_CUDA": "1"},
        needs={"muAlg": "github MooreThreads/muAlg", "muThrust": "github MooreThreads/muThrust"},
    ),
)


@dataclass
class Result:
    """The result of an extension."""

    name: str
    version: str = ""
    origin: str = ""
    changed_lines: int = 0
    built: bool = False
    compared_with: str = ""
    left_out: str = ""
    cases: int = 0
    right: int = 0
    wrong: dict[str, str] = field(default_factory=dict)
    reason: str = ""  # for which it was not built or not compared


def run(extension: Extension, folder: Path, work: Path, already_built: bool = False) -> Result:
    """Build a copy of an extension in `work`, and compare its cases."""
    source, copy = folder / extension.name, work / extension.name
    compared_with = "; ".join(extension.cases.values())
    result = Result(
        extension.name,
        origin=extension.origin,
        compared_with=compared_with,
        left_out=extension.left_out,
    )
    missing = [name for name in (extension.name, *extension.needs) if not (folder / name).is_dir()]
    if missing:
        result.reason = f"not run: there is no {', '.join(missing)} in the folder of extensions"
        return result
    result.version = version(source)
    before = (source / "setup.py").read_text()
    changed = _edited(before, extension.edits)
    result.changed_lines = _lines_changed(before, changed)
    if not already_built:
        shutil.copytree(source, copy, dirs_exist_ok=True)
        if (copy / "setup.py").read_text() != changed:
            (copy / "setup.py").write_text(changed)
        done = subprocess.run(
            [sys.executable, "setup.py", *extension.arguments],
            cwd=copy,
            env=_environment(extension, folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        (work / f"{extension.name}.log").write_text(done.stdout)
        if done.returncode != 0:
            result.reason = f"not built: {_first_error(done.stdout)}"
            return result
    altered = _altered(source, copy)
    if altered:
        result.reason = f"the build changed its inputs: {', '.join(altered)}"
        return result
    result.built = True
    for function in extension.cases:
        _compare(function, copy, result)
    return result


def version(source: Path) -> str:
    """The version that an extension's sources state."""
    stated = source / "version.txt"
    if stated.is_file():
        return stated.read_text().strip()
    pattern = re.compile(r"^ *(?:__)?version(?:__)? *= *[\"']([\d.]\S*)[\"']", re.MULTILINE)
    paths = [source / "setup.py", *sorted(source.glob("*/__init__.py")), source / "pyproject.toml"]
    texts = [path.read_text() for path in paths if path.is_file()]
    return next((found[1] for found in map(pattern.search, texts) if found), "unknown")


def _edited(text: str, edits: tuple[tuple[str, str], ...]) -> str:
    for before, after in edits:
        if before not in text:
            raise ValueError(f"setup.py has no {before!r}: another version of the extension than the table's")
        text = text.replace(before, after)
    return text


def _lines_changed(before: str, after: str) -> int:
    blocks = difflib.SequenceMatcher(
        None, before.split("\n"), after.split("\n"), autojunk=False
    ).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")


def _environment(extension: Extension, folder: Path) -> dict[str, str]:
    included = [str(folder / name) for name in extension.needs]
    paths = os.pathsep.join([*included, *filter(None, [os.environ.get("CPLUS_INCLUDE_PATH")])])
    return {**os.environ, **extension.environment, **({"CPLUS_INCLUDE_PATH": paths} if paths else {})}


def _first_error(log: str) -> str:
    """The compiler's first error, or the last line, which is that of an exception."""
    found = re.search(r"^\S*?([^/\s]+: (?:fatal )?error: .*)$", log, re.MULTILINE)
    return (found[1] if found else log.strip().splitlines()[-1])[:300]


def _altered(source: Path, copy: Path) -> list[str]:
    """Sources that differ in the copy, except setup.py."""
    paths = [path for path in source.rglob("*") if path.suffix in (".cu", ".cuh", ".cpp", ".h")]
    names = [path.relative_to(source) for path in paths]
    return [str(name) for name in names if (copy / name).read_bytes() != (source / name).read_bytes()]


def _compare(function: str, copy: Path, result: Result) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.musa_port.real_extensions", "compare", function, str(copy)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        result.reason = f"{function} ended with status {done.returncode}: {done.stderr.strip()[-300:]}"
        return
    counts = json.loads(lines[-1])
    result.cases += counts["cases"]
    result.right += counts["right"]
    result.wrong.update(counts["wrong"])


def compare(function: str, copy: Path) -> int:
    """Run the cases of a built extension in this process; print how many were right."""
    import torch

    from tests.musa_port import real_extension_cases as cases

    sys.path[:0] = [str(copy), *map(str, sorted(copy.glob("build/lib*")))]
    torch.musa.init()
    torch.manual_seed(0)
    comparison = cases.Comparison()
    getattr(cases, function)(comparison)
    total = comparison.right + len(comparison.wrong)
    print(json.dumps({"cases": total, "right": comparison.right, "wrong": comparison.wrong}))
    return 0


def table(results: list[Result]) -> str:
    """A line for each extension."""
    lines = [f"{'extension':15} {'version':10} {'built':6} right/cases"]
    for result in results:
        counts = f"{result.right}/{result.cases}"
        built = "yes" if result.built else "no"
        lines.append(f"{result.name:15} {result.version:10} {built:6} {counts}  {result.reason}")
        lines += [f"    wrong: {name}: {why}" for name, why in list(result.wrong.items())[:5]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("run")
    build.add_argument("folder", type=Path)
    build.add_argument("--only", nargs="*", choices=[extension.name for extension in EXTENSIONS])
    build.add_argument("--work", type=Path)
    build.add_argument("--built", action="store_true")
    one = commands.add_parser("compare")
    one.add_argument("function")
    one.add_argument("copy", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "compare":
        return compare(options.function, options.copy)
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        wanted = [one for one in EXTENSIONS if not options.only or one.name in options.only]
        results = [run(one, options.folder.resolve(), work, options.built) for one in wanted]
    print(table(results))
    if not options.only:
        right, total = sum(result.right for result in results), sum(result.cases for result in results)
        built = sum(result.built for result in results)
        records.write(
            "cuda_extensions",
            "python -m tests.musa_port.real_extensions run FOLDER",
            f"{built} of {len(results)} extensions built, {right} of {total} cases right",
            extensions=[asdict(result) for result in results],
        )
    return 0 if all(result.built and result.right == result.cases for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
