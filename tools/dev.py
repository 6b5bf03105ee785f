#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Task runner of the workspace: ``python3 tools/dev.py VERB``. Standard library only, Python 3.10+."""

import argparse
import contextlib
import fcntl
import importlib.util
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
    device_pass,
    docs,
    ecosystem,
    gpu,
    gpu_sanitizer,
    legs,
    lint,
    matrix,
    packages,
    prerequisites,
    progress,
    release,
    sdk_wheels,
    tool_venv,
    typing_check,
    versions,
    wheel_check,
)

DEMO_ACCURACY = 0.97
# The parser of the packages' commands, loaded by its path because no package is installed yet.
COMMAND_LINE = ROOT / "packages" / "musa-runtime" / "src" / "musa_runtime" / "command_line.py"


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


def set_up(arguments: argparse.Namespace, required=prerequisites.BUILD, *, only=None) -> float:
    """Updates .venv, with the packages in `only` if it is given; returns the seconds it took."""
    start = time.monotonic()
    with workspace_lock():
        prerequisites.ensure(required)
        packages.package_names()  # checks for missing packages before minutes are spent on requirements
        built = packages.install_packages(options_of(arguments), only=only)
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
    set_up(arguments, only=packages.core_names() if arguments.core else None)
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
    seconds = set_up(arguments, only=packages.core_names())
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
    chosen = legs.select(
        arguments.rest,
        every=arguments.legs,
        full=arguments.full,
        rest=arguments.rest_of_legs,
        sanitized=bool(options.sanitizer),
        names=arguments.leg,
    )
    complete = (arguments.legs or arguments.full) and not arguments.rest
    record = f"python3 tools/dev.py test --{'all' if arguments.full else 'legs'}" if complete else ""
    return legs.run(chosen, packages.PYTHON, env, ROOT / "build" / "test", arguments.jobs, record)


def wheels(arguments: argparse.Namespace) -> int:
    """Builds the wheels for this system. The workflow "wheels" builds those of a release."""
    if arguments.sdk:
        sdk_wheels.kind_of(arguments.sdk)  # before minutes are spent
        prerequisites.ensure(prerequisites.BUILD)
    else:
        # The others would be compiled twice, here with the checks of a developer's build.
        set_up(arguments, only=packages.built_against())
    folder, sdk = ROOT / "build" / "release", ""
    with workspace_lock():
        if not arguments.local:
            tool_venv.make(folder, ROOT / "requirements-release.txt", "installing release tools")
        if arguments.sdk:
            sdk, made = sdk_wheels.build(arguments.sdk, options_of(arguments))
        else:
            made = packages.build_wheels(packages.package_names(), options_of(arguments), ROOT / "dist")
    for path in made:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB")
    if found := wheel_check.check_wheels(made, sdk):
        raise WorkspaceError("these wheels must not be published:\n" + "\n".join(found))
    return 0 if arguments.local else wheel_check.run_tools(folder / "venv" / "bin", made)


def run_lint(arguments: argparse.Namespace) -> int:
    with workspace_lock():
        prerequisites.ensure((*prerequisites.BASIC, prerequisites.DISK))
        bad = lint.run(arguments.rest)
        if arguments.types:
            packages.install_requirements()
            bad |= typing_check.run()
        if arguments.device_pass or arguments.all:
            packages.install_requirements()
            bad |= device_pass.run(arguments.all)
    return int(bad != 0)


def run_matrix(arguments: argparse.Namespace) -> int:
    prerequisites.ensure(prerequisites.BUILD)
    torches = arguments.torch or versions.served_torch().minors()
    return matrix.run(torches, arguments.python or [matrix.RUNNING])


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
    return ecosystem.run(arguments.rest)


def run_docs(arguments: argparse.Namespace) -> int:
    set_up(arguments)
    with workspace_lock():
        return docs.run(arguments.code)


def bench(arguments: argparse.Namespace) -> int:
    set_up(arguments)
    return run_python(arguments, "-m", "benchmarks", *arguments.rest)


def clean(arguments: argparse.Namespace) -> int:
    """Removes build products, and .venv with --all. Records and files under version control are kept."""
    with workspace_lock():
        targets = [
            ROOT / "dist",
            *(ROOT / "packages").glob("*/build"),
            *(ROOT / "packages").glob("*/src/*.egg-info"),
        ]
        targets += [path for path in (ROOT / "build").iterdir() if path.name not in ("dev.lock", "records")]
        targets += [packages.STAMPS / name for name in packages.package_names()]
        targets += [ROOT / ".venv"] * arguments.all
        for path in targets:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return 0


def set_version(arguments: argparse.Namespace) -> int:
    changed = release.run(arguments.number)
    print(f"{arguments.number} is in {len(changed)} files. docs/releasing.md has the next steps.")
    return 0


VERBS = {
    "demo": (
        demo,
        "set up, then train a network on real images on the musa device; arguments go to the example",
    ),
    "test": (
        test,
        "set up, then test what changed and a sample of the rest; a PATH: only that; more goes to pytest",
    ),
    "setup": (setup, "make .venv, install the requirements, build the packages"),
    "wheels": (wheels, "build dist/*.whl for this system, and check what an index needs"),
    "lint": (run_lint, "run the hooks of pre-commit on all files; arguments go to `pre-commit run`"),
    "matrix": (run_matrix, "build and test with another torch or Python, in build/matrix"),
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
    "version": (set_version, "set the version of all packages, and its section of CHANGELOG.md: X.Y.Z"),
    "clean": (clean, "remove build products"),
}


def load_command_line():
    spec = importlib.util.spec_from_file_location("command_line", COMMAND_LINE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


command_line = load_command_line()


def parser() -> argparse.ArgumentParser:
    version = f"dev.py of torch_musa {versions.of_workspace()}"
    result = command_line.Parser(
        prog="dev.py",
        description="Builds, tests and checks this workspace.",
        epilog="VERB --help prints the options of a verb.",
        version=version,
    )
    verbs = result.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    for name, (run, text) in VERBS.items():
        verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", version=version)
        verb.set_defaults(run=run)
        verb.add_argument("--debug", action="store_true", help="build without optimisation, with assertions")
        sanitizer = verb.add_mutually_exclusive_group()
        sanitizer.add_argument("--asan", action="store_true", help="build with the address and UB sanitizers")
        sanitizer.add_argument("--tsan", action="store_true", help="build with the thread sanitizer")
        if name == "setup":
            text = "build the packages that a tensor on the device needs, and installed ones, and no others"
            verb.add_argument("--core", action="store_true", help=text)
        if name == "test":
            verb.add_argument(
                "--all",
                dest="full",
                action="store_true",
                help="complete sweeps in the first leg, and every test that depends on a mode in each mode",
            )
            text = "all legs: every test, and shares of those that depend on a mode in each mode (CI)"
            verb.add_argument("--legs", action="store_true", help=text)
            text = (
                "a share of all legs, by turns, without the tests that the tier has run (CI on one machine)"
            )
            verb.add_argument("--rest", dest="rest_of_legs", action="store_true", help=text)
            text = "this leg; may be repeated"
            verb.add_argument("--leg", action="append", default=[], metavar="NAME", help=text)
            verb.add_argument(
                "--jobs",
                type=int,
                default=legs.JOBS,
                help="processes; 1 runs the tests on the terminal, as --pdb needs (default: cores + 1, "
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
            text = "without auditwheel, twine and check-wheel-contents, which are installed otherwise"
            verb.add_argument("--local", action="store_true", help=text)
            text = "for the MUSA SDK in this folder, with its mcc: dist/musa4/*.whl, without the emulator"
            verb.add_argument("--sdk", type=lambda name: Path(name).absolute(), metavar="DIR", help=text)
        if name == "matrix":
            for option, example in (("--torch", "2.12"), ("--python", "3.12")):
                default = "all" if option == "--torch" else "the one that runs dev.py"
                text = f"as {example}; may be repeated (default: {default})"
                verb.add_argument(option, action="append", metavar="X.Y", help=text)
        if name == "gpu":
            verb.add_argument("--build", action="store_true", help="build and import only; needs no GPU")
            text = "run kernels under compute-sanitizer; arguments name its tools (default: three)"
            verb.add_argument("--sanitize", action="store_true", help=text)
            verb.add_argument("--jobs", type=int, default=12, help="processes at a time (default: 12)")
            text = "end a process of tests after so many seconds (default: 3600)"
            verb.add_argument("--limit", type=float, default=3600, help=text)
        if name == "docs":
            text = "the pages whose code blocks run (default: all)"
            verb.add_argument("--code", choices=["all", "changed", "none"], default="all", help=text)
        if name == "version":
            verb.add_argument("number", metavar="X.Y.Z", help="as 0.2.0")
        if name == "clean":
            verb.add_argument("--all", action="store_true", help="remove .venv too")
    return result


def main(argv: list[str]) -> int:
    arguments, arguments.rest = parser().parse_known_args(argv)
    verb = command_line.innermost(arguments)
    if arguments.rest and arguments.verb in ("setup", "wheels", "matrix", "docs", "version", "clean"):
        verb.error(f"unrecognized arguments: {' '.join(arguments.rest)}")
    # Other verbs hand further arguments on, such as options of pytest.
    for option in arguments.rest:
        if suggestion := verb.suggestion(option):
            print(
                f"dev.py: {option} is no option of {arguments.verb} and is handed on.{suggestion}",
                file=sys.stderr,
            )
    try:
        return arguments.run(arguments)
    except WorkspaceError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    # Builds and tests start hundreds of processes that import torch, which takes twice as long if each one
    # compiles torch's modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A terminated run exits like an interrupted one, which ends the processes it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
