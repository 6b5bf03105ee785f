# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks the types of the Python API with mypy and pyright: `dev.py lint --types`, docs/design/types.md."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import ROOT, WorkspaceError, packages, tool_venv

FOLDER = ROOT / "build" / "typing"
REQUIREMENTS = ROOT / "requirements-typing.txt"
SETTINGS = ROOT / "pyproject.toml"
SAMPLES = ROOT / "tests" / "typing"
BIN = FOLDER / "venv" / "bin"
# The mark of a line in a sample in which each type checker has to report an error.
WRONG = "# wrong"

# Modules, and packages with all their modules, in which functions may lack types and no error is reported.
# The list may only shrink; an entry without an error is an error itself. Complete are musa_runtime and the
# modules of torch_musa with a public interface.
NOT_YET_TYPED = (
    "musa_as_cuda",
    "musa_compat",
    "musa_compile",
    "musa_ops_mudnn.fused",
    "musa_ops_ported.codegen",
    "musa_ops_ported.plugin",
    "musa_ops_vision",
    "torch_musa.__main__",
    "torch_musa.checks",
    "torch_musa.debug.module_names",
    "torch_musa.debug.precise_reference",
    "torch_musa.debug.providers",
    "torch_musa.debug.random_properties",
    "torch_musa.debug.report_page",
    "torch_musa.debug.script",
    "torch_musa.debug.substitutes",
    "torch_musa.debug.ties",
    "torch_musa.doctor",
    "torch_musa.entry_points",
    "torch_musa.extras",
    "torch_musa.import_hooks",
    "torch_musa.inductor_refusal",
    "torch_musa.integrations",
    "torch_musa.module_loader",
    "torch_musa.pack_modules",
    "torch_musa.package_names",
    "torch_musa.pins",
    "torch_musa.plugins",
    "torch_musa.listings",
    "torch_musa.script_runner",
    "torch_musa.sdk_version",
    "torch_musa.toolchain",
)


class Error(NamedTuple):
    """An error of a type checker."""

    file: str
    line: int
    text: str


def run(site: Path = packages.SITE) -> list[str]:
    """Returns the problems as lines. site: the folder with torch and the requirements of the packages."""
    tool_venv.make(FOLDER, REQUIREMENTS, "installing the type checkers")
    prepare(site)
    found = judge_sources(mypy(*(word for name in import_packages(ROOT) for word in ("-p", name))))
    samples = sorted(SAMPLES.glob("*.py"))
    wrong = {path: marked_lines(path.read_text(encoding="utf-8")) for path in samples}
    for checker, errors in (("mypy", mypy(*map(str, samples))), ("pyright", pyright(samples))):
        found += judge_samples(
            checker, errors, {str(path.relative_to(ROOT)): wrong[path] for path in samples}
        )
    return found


def prepare(site: Path) -> None:
    """Sets the search path of the type checkers: the stub package of torch.musa, the sources, and `site`."""
    stubs = FOLDER / "site"
    stubs.mkdir(parents=True, exist_ok=True)
    if not (site / "torch" / "__init__.py").is_file():
        raise WorkspaceError(f"{site} has no torch.\nFix: python3 tools/dev.py setup")
    type_stubs().write(stubs, site / "torch", pack_modules(ROOT))
    sources = sorted((ROOT / "packages").glob("*/src"))
    [own] = (FOLDER / "venv" / "lib").glob("python3.*/site-packages")
    (own / "workspace.pth").write_text("".join(f"{path}\n" for path in (stubs, *sources, site)))


def type_stubs():
    """Returns torch_musa.type_stubs, without importing torch_musa, which imports torch."""
    sys.path.append(str(ROOT / "packages" / "musa-runtime" / "src"))
    path = ROOT / "packages" / "torch-musa" / "src" / "torch_musa" / "type_stubs.py"
    spec = importlib.util.spec_from_file_location("type_stubs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def import_packages(root: Path) -> list[str]:
    return sorted(path.parent.name for path in root.glob("packages/*/src/*/__init__.py"))


def pack_modules(root: Path) -> dict[str, str]:
    """Returns the modules that packs add to torch.musa: `{"amp": "musa_amp"}`."""
    found = {}
    for path in sorted(root.glob("packages/*/pyproject.toml")):
        text = path.read_text(encoding="utf-8")
        pattern = r'^\[project\.entry-points\."torch_musa\.modules\.v2"\]\n((?:.+\n)*)'
        for section in re.findall(pattern, text, re.MULTILINE):
            found.update(re.findall(r'^(\w+)\s*=\s*"([\w.]+)"', section, re.MULTILINE))
    return found


def marked_lines(text: str) -> set[int]:
    return {number for number, line in enumerate(text.splitlines(), 1) if line.endswith(WRONG)}


def mypy(*arguments: str) -> list[Error]:
    command = [str(BIN / "mypy"), "--config-file", str(SETTINGS), "--cache-dir", str(FOLDER / "mypy")]
    done = subprocess.run([*command, "--output=json", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1) or done.stderr:
        raise WorkspaceError(f"mypy failed:\n{done.stdout}{done.stderr}")
    return mypy_errors(done.stdout)


def mypy_errors(output: str) -> list[Error]:
    reports = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [
        Error(report["file"], report["line"], f"{report['message']}  [{report['code']}]")
        for report in reports
        if report["severity"] == "error"
    ]


def pyright(samples: Sequence[Path]) -> list[Error]:
    settings = FOLDER / "pyrightconfig.json"
    # An import is not resolved from its source if torch.musa is missing at run time too.
    options = {"typeCheckingMode": "standard", "reportMissingModuleSource": "error"}
    settings.write_text(json.dumps({**options, "include": [str(path) for path in samples]}))
    command = [str(BIN / "basedpyright"), "--outputjson", "-p", str(settings)]
    command += ["--pythonpath", str(BIN / "python")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise WorkspaceError(f"pyright failed:\n{done.stdout}{done.stderr}")
    return pyright_errors(done.stdout)


def pyright_errors(output: str) -> list[Error]:
    return [
        Error(
            str(Path(report["file"]).relative_to(ROOT)),
            report["range"]["start"]["line"] + 1,
            f"{report['message'].splitlines()[0]}  [{report.get('rule', '')}]",
        )
        for report in json.loads(output)["generalDiagnostics"]
        if report["severity"] == "error"
    ]


def module_of(file: str) -> str:
    """Returns the module of a source file: packages/musa-runtime/src/musa_runtime/memory.py."""
    name = file.partition("/src/")[2]
    return re.sub(r"(/__init__)?\.pyi?$", "", name).replace("/", ".")


def judge_sources(errors: Iterable[Error], not_yet: Sequence[str] = NOT_YET_TYPED) -> list[str]:
    """Returns errors in modules that are not listed, and listed entries without an error."""
    found, used = [], set()
    for error in errors:
        module = module_of(error.file)
        listed = [name for name in not_yet if module == name or module.startswith(f"{name}.")]
        used.update(listed)
        if not listed:
            found.append(f"{error.file}:{error.line}: {error.text}")
    return found + [
        f"tools/workspace/typing_check.py: {name} has no error any more; remove it from NOT_YET_TYPED"
        for name in not_yet
        if name not in used
    ]


def judge_samples(checker: str, errors: Iterable[Error], wrong: Mapping[str, set[int]]) -> list[str]:
    """Returns errors outside of marked lines, and marked lines without an error. wrong: lines by file."""
    found, seen = [], set()
    for error in errors:
        seen.add((error.file, error.line))
        if error.line not in wrong.get(error.file, ()):
            found.append(f"{error.file}:{error.line}: {checker}: {error.text}")
    return found + [
        f"{file}:{line}: {checker} reports no error in a line that is marked as wrong"
        for file, lines in wrong.items()
        for line in sorted(lines)
        if (file, line) not in seen
    ]
