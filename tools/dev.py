#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Task runner of the workspace: ``python3 tools/dev.py VERB``. Standard library only, Python 3.10+."""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036 - an older python3 must print this message
    sys.exit(
        f"Python 3.10 or newer is needed, this is {sys.version.split()[0]}: run dev.py with a newer python3"
    )

from workspace import (
    ROOT,
    WorkspaceError,
    conda,
    cross,
    device_pass,
    docs,
    ecosystem,
    gpu,
    gpu_sanitizer,
    images,
    legs,
    matrix,
    packages,
    prerequisites,
    progress,
    release,
    tree_lint,
    typing_check,
    versions,
    wheel_check,
)

DEMO_ACCURACY = 0.97


def options_of(arguments: argparse.Namespace) -> packages.Options:
    sanitizer = "address" if arguments.asan else "thread" if arguments.tsan else ""
    return packages.Options(debug=arguments.debug, sanitizer=sanitizer)


@contextlib.contextmanager
def workspace_lock():
    """Locks .venv and the build folders against other runs of dev.py."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "dev.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another dev.py is building in this tree; waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_up(
    arguments: argparse.Namespace,
    required=prerequisites.BUILD,
    *,
    core: bool = False,
    wheels: Path | None = None,
) -> float:
    """Updates .venv; returns the seconds it took. wheels: folder of wheels to install instead of building."""
    start = time.monotonic()
    with workspace_lock():
        prerequisites.ensure(required)
        packages.package_names()  # checks for missing packages before minutes are spent on requirements
        packages.install_requirements()
        built = packages.install_packages(options_of(arguments), core=core, wheels=wheels)
    seconds = time.monotonic() - start
    print(
        f"set up in {seconds:.0f} s: {', '.join(built) + ' built' if built else 'all packages up to date'}",
        flush=True,
    )
    return seconds


def run_python(arguments: argparse.Namespace, *command: str) -> int:
    env = {**os.environ, **options_of(arguments).run_environment()}
    with progress.process_group([packages.PYTHON, *command], cwd=ROOT, env=env) as process:
        return process.wait()


def setup(arguments: argparse.Namespace) -> int:
    set_up(arguments, wheels=arguments.wheels)
    return 0


def check_demo(folder: Path) -> dict:
    """Returns the demo's result; raises WorkspaceError if its accuracy is too low or its plot is missing."""
    report = folder / "train_digits.json"
    if not report.is_file():
        raise WorkspaceError(f"the demo left no {report}: it did not run to its end")
    result = json.loads(report.read_text())
    if not result["accuracy"] >= DEMO_ACCURACY:
        raise WorkspaceError(
            f"the demo reached a test accuracy of {result['accuracy']:.4f}, below {DEMO_ACCURACY}"
        )
    plot = folder / result["plot"]
    if not plot.is_file() or plot.stat().st_size == 0:
        raise WorkspaceError(f"the demo wrote no plot: {plot} is missing or empty")
    return result


def demo(arguments: argparse.Namespace) -> int:
    # Op packs take minutes to build, and the demo does not need them.
    seconds = set_up(arguments, core=True)
    folder = ROOT / "build" / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    status = run_python(arguments, "examples/train_digits.py", "--out", str(folder), *arguments.rest)
    if status != 0:
        raise WorkspaceError(f"examples/train_digits.py ended with status {status}; its output is above")
    result = check_demo(folder)
    print(
        f"test accuracy {result['accuracy']:.2%} on device {result['device']} "
        f"after {result['seconds']:.1f} s of training"
    )
    print(f"plot: {folder / result['plot']}")
    print(f"set-up took {seconds:.0f} s")
    return 0


def test(arguments: argparse.Namespace) -> int:
    set_up(arguments, prerequisites.TEST)
    options = options_of(arguments)
    env = options.run_environment()
    chosen = legs.select(arguments.rest, full=arguments.full, sanitized=bool(options.sanitizer))
    results = legs.run_legs(chosen, packages.PYTHON, env, ROOT / "build" / "test", arguments.jobs)
    text, status = legs.summary(results)
    print(text)
    return status


def wheels(arguments: argparse.Namespace) -> int:
    names = packages.package_names()
    if unknown := [name for name in arguments.only if name not in names]:
        raise WorkspaceError(f"a release has no package {unknown[0]}; it has {', '.join(names)}")
    set_up(arguments)
    with workspace_lock():
        if not arguments.local:
            release.run(options_of(arguments), ROOT / "dist", twice=arguments.twice, only=arguments.only)
            return 0
        made = packages.build_wheels(arguments.only or names, options_of(arguments), ROOT / "dist")
    for path in made:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB")
    if found := wheel_check.check_wheels(made):
        raise WorkspaceError("these wheels must not be published:\n" + "\n".join(found))
    return 0


def run_images(arguments: argparse.Namespace) -> int:
    with workspace_lock():
        return images.run(executed=arguments.execute, suites=arguments.suite)


def run_conda(arguments: argparse.Namespace) -> int:
    set_up(arguments)
    with workspace_lock():
        return conda.run(packages.package_names() if arguments.build_all else arguments.build)


def lint(arguments: argparse.Namespace) -> int:
    with workspace_lock():
        prerequisites.ensure((*prerequisites.BASIC, prerequisites.DISK))
        packages.install_requirements()
    status = run_python(arguments, "-m", "ruff", "check", *(arguments.rest or ["."]))
    found = tree_lint.check_tree(ROOT)
    for line in found:
        print(line)
    if arguments.types:
        with workspace_lock():
            problems = typing_check.run()
        for line in problems:
            print(line)
        found += problems
    refused = device_pass.run(arguments.all) if arguments.device_pass or arguments.all else 0
    bad = status != 0 or bool(found) or refused != 0
    if not bad:
        print("lint: clean")
    return int(bad)


def run_matrix(arguments: argparse.Namespace) -> int:
    prerequisites.ensure(prerequisites.BUILD)
    torches = arguments.torch or versions.served_torch().minors()
    if arguments.machine:
        if arguments.python or arguments.installed_torch:
            parser().error("--machine goes with --torch alone: the other system brings its Python")
        return cross.run(torches, arguments.machine)
    return matrix.run(torches, arguments.python or [matrix.RUNNING], installed=arguments.installed_torch)


def run_gpu(arguments: argparse.Namespace) -> int:
    prerequisites.ensure(prerequisites.BUILD)
    if arguments.sanitize:
        cell = gpu.Cell()
        found = gpu.prepare(cell)
        gpu.refuse_without_gpu(cell, found)
        tools = arguments.rest or gpu_sanitizer.TOOLS
        return gpu_sanitizer.run(cell, found, tools, parts=arguments.jobs, limit=arguments.limit)
    return gpu.run(arguments.rest, build_only=arguments.build, jobs=arguments.jobs, limit=arguments.limit)


def run_ecosystem(arguments: argparse.Namespace) -> int:
    set_up(arguments, prerequisites.TEST)
    with workspace_lock():
        versions = ecosystem.install()
    return ecosystem.run(versions, arguments.only, arguments.all, arguments.record, arguments.rest)


def run_docs(arguments: argparse.Namespace) -> int:
    set_up(arguments)
    with workspace_lock():
        return docs.run(VERBS, code=not arguments.no_code)


def bench(arguments: argparse.Namespace) -> int:
    set_up(arguments)
    return run_python(arguments, "-m", "benchmarks", *arguments.rest)


def clean(arguments: argparse.Namespace) -> int:
    """Removes build products, and .venv with --all. Files under version control are kept."""
    with workspace_lock():
        targets = [
            ROOT / "dist",
            *(ROOT / "packages").glob("*/build"),
            *(ROOT / "packages").glob("*/src/*.egg-info"),
        ]
        targets += [path for path in (ROOT / "build").iterdir() if path.name != "dev.lock"]
        targets += (
            [packages.VENV]
            if arguments.all
            else [packages.STAMPS / name for name in packages.package_names()]
        )
        for path in targets:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return 0


VERBS = {
    "demo": (
        demo,
        "set up, then train a network on real images on the musa device; arguments go to the example",
    ),
    "test": (
        test,
        "set up, then run every test; with a PATH only that, once; further arguments go to pytest",
    ),
    "setup": (setup, "make .venv, install the requirements, build the packages"),
    "wheels": (wheels, "build dist/*.whl for any Linux of the platform tag, and check what an index needs"),
    "images": (run_images, "check the Dockerfiles in docker/; dist/ has to hold the wheels for --execute"),
    "conda": (run_conda, "render the recipe in conda/, and build its outputs with packages of this machine"),
    "lint": (lint, "ruff and the rules of the tree"),
    "matrix": (run_matrix, "build and test with another torch, Python or processor, in build/matrix"),
    "gpu": (
        run_gpu,
        "build the packs over CUDA in build/gpu and test them on an NVIDIA GPU; arguments name suites",
    ),
    "ecosystem": (
        run_ecosystem,
        "install real packages in build/ecosystem and run them on the musa device; arguments go to pytest",
    ),
    "docs": (run_docs, "set up, then build the manual into build/docs/site, and check its links and code"),
    "bench": (bench, "set up, then measure against torch's CPU device; arguments go to the benchmarks"),
    "clean": (clean, "remove build products"),
}


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="dev.py", description=__doc__)
    verbs = result.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (run, text) in VERBS.items():
        verb = verbs.add_parser(name, help=text, description=text)
        verb.set_defaults(run=run)
        verb.add_argument("--debug", action="store_true", help="build without optimisation, with assertions")
        sanitizer = verb.add_mutually_exclusive_group()
        sanitizer.add_argument("--asan", action="store_true", help="build with the address and UB sanitizers")
        sanitizer.add_argument("--tsan", action="store_true", help="build with the thread sanitizer")
        if name == "setup":
            text = "install the wheels in this folder, and build the packages that have none there"
            verb.add_argument("--wheels", type=Path, metavar="FOLDER", help=text)
        if name == "test":
            verb.add_argument(
                "--all",
                "--full",
                dest="full",
                action="store_true",
                help="complete sweeps in the first leg, and every test that depends on a mode in each mode",
            )
            verb.add_argument(
                "--jobs",
                type=int,
                default=(os.cpu_count() or 1) + 1,
                help="legs at a time; 1 gives each the terminal, as --pdb needs (default: cores + 1, "
                "as tests of several processes often wait)",
            )
        if name == "lint":
            verb.add_argument(
                "--device-pass",
                action="store_true",
                help="check changed .mu files and a sample with both passes of clang (installs clang-16)",
            )
            verb.add_argument("--all", action="store_true", help="check every .mu file so")
            text = "check the types of the Python API with mypy and pyright (installs them)"
            verb.add_argument("--types", action="store_true", help=text)
        if name == "wheels":
            chosen = verb.add_mutually_exclusive_group()
            chosen.add_argument("--local", action="store_true", help="for this system only, which is faster")
            chosen.add_argument(
                "--twice",
                action="store_true",
                help="build a copy of the tree in another folder too, and compare the wheels",
            )
            verb.add_argument(
                "--only",
                action="append",
                default=[],
                metavar="PACKAGE",
                help="build this package; may be repeated (default: all). A wheel that is up to date is kept",
            )
        if name == "images":
            text = "run each instruction once, as root in a system that debootstrap makes"
            verb.add_argument("--execute", action="store_true", help=text)
            text = "only the images that begin with this suite of Debian; may be repeated"
            verb.add_argument("--suite", action="append", default=[], metavar="SUITE", help=text)
        if name == "conda":
            chosen = verb.add_mutually_exclusive_group()
            text = "build this output; may be repeated"
            chosen.add_argument("--build", action="append", default=[], metavar="OUTPUT", help=text)
            chosen.add_argument("--build-all", action="store_true", help="build every output")
        if name == "matrix":
            for option, example in (("--torch", "2.12"), ("--python", "3.12")):
                default = "all" if option == "--torch" else "the one that runs dev.py"
                text = f"as {example}; may be repeated (default: {default})"
                verb.add_argument(option, action="append", metavar="X.Y", help=text)
            verb.add_argument(
                "--installed-torch",
                action="store_true",
                help="use the torch that the Python has, with its CUDA libraries",
            )
            text = "compile for this processor, and test in a Debian system of it that QEMU emulates (root)"
            verb.add_argument("--machine", choices=sorted(cross.MACHINES), help=text)
        if name == "gpu":
            verb.add_argument("--build", action="store_true", help="build and import only; needs no GPU")
            text = "run kernels under compute-sanitizer; arguments name its tools (default: three)"
            verb.add_argument("--sanitize", action="store_true", help=text)
            verb.add_argument("--jobs", type=int, default=12, help="processes at a time (default: 12)")
            text = "end a process of tests after so many seconds (default: 3600)"
            verb.add_argument("--limit", type=float, default=3600, help=text)
        if name == "ecosystem":
            text = "only cases whose name holds this shell-style pattern"
            verb.add_argument("--only", default="", metavar="PATTERN", help=text)
            text = "the cases that take long too; a complete run writes tests/ecosystem/last_run.json"
            verb.add_argument("--all", action="store_true", help=text)
            text = "put the outcomes of a run with --only into the record too"
            verb.add_argument("--record", action="store_true", help=text)
        if name == "docs":
            verb.add_argument("--no-code", action="store_true", help="do not run the code blocks of pages")
        if name == "clean":
            verb.add_argument("--all", action="store_true", help="remove .venv too")
    return result


def main(argv: list[str]) -> int:
    arguments, arguments.rest = parser().parse_known_args(argv)
    if arguments.rest and arguments.verb in ("setup", "wheels", "images", "conda", "matrix", "docs", "clean"):
        parser().error(f"{arguments.verb} takes no argument {arguments.rest[0]}")
    try:
        return arguments.run(arguments)
    except WorkspaceError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    # A terminated run exits like an interrupted one, which ends the processes it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
