# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The virtual environment and its packages: what is built, in which order, and what is up to date."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from . import ROOT, WorkspaceError, file_times, underscored
from .progress import run_logged


def claimed(environment: Path) -> Path:
    """Returns the file that names the tree whose `pip install -e .` made an environment its own."""
    return environment / "musa-stamps" / "tree"


def own_environment(python: Path) -> Path:
    """Returns the environment of a Python if `pip install -e .` has set it up for this tree, else .venv."""
    file = claimed(python)
    return python if file.is_file() and file.read_text() == str(ROOT) else ROOT / ".venv"


VENV = own_environment(Path(sys.prefix))
PYTHON = VENV / "bin" / "python"
STAMPS = VENV / "musa-stamps"
SITE = VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
LOGS = ROOT / "build" / "logs"
REQUIREMENTS = ROOT / "requirements-dev.txt"
GENERATED = {"build", "dist", "__pycache__", ".pytest_cache", ".ruff_cache"}
# Environment variables that affect the result of a build, in addition to the sources.
BUILD_VARIABLES = (
    "MUSA_HOME",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "TORCH_MUSA_ARCH_LIST",
    "MUSA_EMULATOR_SDK",
)
# Requirements that a build's result depends on; another version of the others rebuilds nothing.
BUILT_WITH = ("torch", "pybind11", "scikit-build-core", "setuptools")
# Files of a package that no other package's build reads: others link its libraries and include its headers.
IMPLEMENTATION = (".cpp", ".mu", ".md")
# Requirements that every build needs.
BUILD_TOOLS = ("cmake", "ninja", "scikit-build-core", "setuptools", "wheel")
MEMORY_PER_JOB = 2 * 10**9  # for a translation unit that includes torch's headers
# Settings of ccache with which another clone hits: paths below the clone are hashed as relative ones, and
# mcc's precompiled header by its text. CMake and mcc take the launcher.
CCACHE = {
    "CMAKE_C_COMPILER_LAUNCHER": "ccache",
    "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
    "CCACHE_BASEDIR": str(ROOT),
    "CCACHE_NOHASHDIR": "true",
    "CCACHE_PCH_EXTSUM": "true",
    "CCACHE_SLOPPINESS": "pch_defines,time_macros",
}
CMAKE_WITH_CCACHE = (
    # When CMake's precompiled header is made again, ccache reads the old one instead of the headers that
    # changed, and returns a file that was made of others.
    "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
    # A group of files includes them by relative paths, so that its text is the same in every clone.
    "-DCMAKE_UNITY_BUILD_RELOCATABLE=ON",
)
# Number of concurrent builds: a build's precompiled headers and linking leave cores idle.
BUILDS = 2


@dataclass(frozen=True)
class Options:
    debug: bool = False
    sanitizer: str = ""  # "", "address" or "thread"

    @property
    def build_type(self) -> str:
        return "Debug" if self.debug else "Release"

    @property
    def sanitizer_flags(self) -> str:
        kinds = {"": "", "address": "address,undefined", "thread": "thread"}[self.sanitizer]
        return f"-fsanitize={kinds} -fno-omit-frame-pointer -g" if kinds else ""

    def config_settings(self, checked: bool = False) -> list[str]:
        """Returns pip arguments. Each variant has its own build folder, so that objects are not mixed.

        checked: whether the containers of libstdc++ check their indices, so that a test that reads past
        the end of one fails instead of getting a neighbour's bytes. Wheels are built without.
        """
        variant = "-".join(filter(None, ["{wheel_tag}", "debug" * self.debug, self.sanitizer]))
        settings = [f"build-dir=build/{variant}", f"cmake.build-type={self.build_type}"]
        flags = self.sanitizer_flags
        if flags or checked:
            cxx = [os.environ.get("CXXFLAGS", ""), flags, "-D_GLIBCXX_ASSERTIONS" * checked]
            # Sources of a unity build have full paths, and __FILE__ would differ between clones.
            cxx.append(f"-fmacro-prefix-map={ROOT}/=" * checked)
            settings.append(f"cmake.define.CMAKE_CXX_FLAGS={' '.join(filter(None, cxx))}")
        if flags:
            settings += [
                f"cmake.define.{name}={flags}"
                for name in (
                    "CMAKE_C_FLAGS",
                    "CMAKE_EXE_LINKER_FLAGS",
                    "CMAKE_MODULE_LINKER_FLAGS",
                    "CMAKE_SHARED_LINKER_FLAGS",
                )
            ]
        return [f"--config-settings={setting}" for setting in settings]

    def run_environment(self) -> dict[str, str]:
        """Returns the environment of a Python process that loads libraries built with these options."""
        if not self.sanitizer:
            return {}
        sanitizer = {"address": "libasan.so", "thread": "libtsan.so"}[self.sanitizer]
        # Also libstdc++: without it, a sanitizer has no __cxa_throw and aborts at the first
        # exception.
        preload = [compiler_library(sanitizer), compiler_library("libstdc++.so")]
        return {
            "LD_PRELOAD": ":".join(preload),
            # Python and torch keep memory until the process ends; the C++ tests check for leaks
            # instead.
            "ASAN_OPTIONS": "detect_leaks=0",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        }


def compiler_library(name: str) -> str:
    """Returns the path of a library of the compiler."""
    compiler = os.environ.get("CXX", "g++").split()
    found = subprocess.run(
        [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    path = found.stdout.strip()
    if not os.path.isabs(path):
        raise WorkspaceError(f"{compiler[0]} has no {name}, which the sanitizers need")
    return path


def workspace_setting(text: str, pattern: str) -> str | None:
    """Returns the group of ``pattern`` under ``[tool.musa]``. Python 3.10 has no tomllib."""
    section = re.search(r"^\[tool\.musa\]\s*$(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    setting = re.search(pattern, section.group(1), re.MULTILINE | re.DOTALL) if section else None
    return setting.group(1) if setting else None


def parse_package_list(text: str) -> list[str]:
    """Returns ``packages`` of ``[tool.musa]``."""
    names = workspace_setting(text, r"^packages\s*=\s*\[(.*?)\]")
    found = re.findall(r'"([^"]+)"', names or "")
    if not found:
        raise WorkspaceError('pyproject.toml has no list `packages = ["..."]` under [tool.musa]')
    return found


def parse_core_count(text: str) -> int:
    """Returns ``core`` of ``[tool.musa]``: the number of leading packages that make a device."""
    count = workspace_setting(text, r"^core\s*=\s*(\d+)\s*$")
    return int(count) if count else len(parse_package_list(text))


def parse_built_with(text: str) -> dict[str, list[str]]:
    """Returns ``[tool.musa.built-with]``: build requirements in addition to dependencies."""
    section = re.search(r"^\[tool\.musa\.built-with\]\s*$(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    rows = (
        re.findall(r"^([\w-]+)\s*=\s*\[(.*?)\]", section.group(1), re.MULTILINE | re.DOTALL)
        if section
        else []
    )
    return {name: re.findall(r'"([^"]+)"', listed) for name, listed in rows}


def parse_dependencies(text: str) -> list[str]:
    """Returns the names in a pyproject.toml's ``dependencies``, without versions and markers."""
    listed = re.search(r"^dependencies\s*=\s*\[(.*?)\]\s*$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r'"([A-Za-z0-9][\w.-]*)[^"]*"', listed.group(1)) if listed else []


def upstream_packages(root: Path = ROOT) -> dict[str, list[str]]:
    """Returns per package, in build order, the workspace packages that it is built with.

    Raises:
        WorkspaceError: if one of them is built later or is not in the workspace.
    """
    text = (root / "pyproject.toml").read_text()
    names = parse_package_list(text)
    built_with = parse_built_with(text)
    if unknown := sorted(set(built_with) - set(names)):
        raise WorkspaceError(
            f"[tool.musa.built-with] of pyproject.toml names {unknown[0]}, which is no package"
        )
    upstream: dict[str, list[str]] = {}
    for name in names:
        dependencies = parse_dependencies((root / "packages" / name / "pyproject.toml").read_text())
        needed = [other for other in dependencies if other in names] + built_with.get(name, [])
        for other in needed:
            if other not in upstream:
                raise WorkspaceError(
                    f"{name} is built with {other}, which is not before it in `packages` of pyproject.toml"
                )
        upstream[name] = list(dict.fromkeys(needed))
    return upstream


def package_names(root: Path = ROOT) -> list[str]:
    names = parse_package_list((root / "pyproject.toml").read_text())
    for name in names:
        if not (root / "packages" / name / "pyproject.toml").is_file():
            raise WorkspaceError(
                f"package {name} is listed in [tool.musa] of pyproject.toml, but "
                f"packages/{name}/pyproject.toml does not exist; add the package or take it off the list"
            )
    return names


def source_files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        kept = (name for name in folders if name not in GENERATED and not name.endswith(".egg-info"))
        folders[:] = sorted(kept)  # in place: os.walk descends into these
        yield from (Path(parent) / name for name in sorted(files) if not name.endswith((".pyc", ".so")))


def stamp(
    folder: Path, upstream: Sequence[str], context: Sequence[str], leave_out: tuple[str, ...] = ()
) -> str:
    """Returns a digest of everything that determines the result of installing ``folder``, without files with
    the suffixes in ``leave_out``.

    Python files in ``src`` count by name only: an editable install imports them in place.
    """
    digest = hashlib.sha256()
    for part in [*context, *upstream]:
        digest.update(f"{len(part)}:{part}".encode())
    for path in source_files(folder):
        if path.suffix in leave_out:
            continue
        name = path.relative_to(folder)
        in_place = name.parts[0] == "src" and path.suffix in (".py", ".pyi")
        content = b"" if in_place else path.read_bytes()
        digest.update(f"{name}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def build_environment() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    jobs = max(1, min(len(os.sched_getaffinity(0)), memory // MEMORY_PER_JOB))
    env = {
        **os.environ,
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONUNBUFFERED": "1",
        # A code generator that imports torch must not load the libraries that are being replaced.
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "VIRTUAL_ENV": str(VENV),
    }
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(jobs))
    if shutil.which("ccache", path=env["PATH"]):
        for name, value in CCACHE.items():
            env.setdefault(name, value)
        env["CMAKE_ARGS"] = " ".join([env.get("CMAKE_ARGS", ""), *CMAKE_WITH_CCACHE]).strip()
    return env


def matches(stamp_file: Path, value: str) -> bool:
    return stamp_file.is_file() and stamp_file.read_text() == value


def environment_context(pinned: Sequence[str] = ()) -> str:
    """Returns the Python version and the pinned requirements, or those of them that are named."""
    lines = REQUIREMENTS.read_text().splitlines()
    kept = [line for line in lines if not pinned or line.partition("==")[0] in pinned]
    return "\n".join([sys.version, *kept])


def requirements_outdated() -> bool:
    return not PYTHON.exists() or not matches(STAMPS / "requirements", environment_context())


def make_environment() -> None:
    """Makes .venv if it is missing, with the build tools, which suffice for packages without requirements."""
    if PYTHON.exists():
        version = subprocess.run(
            [PYTHON, "-c", "import sys; print(sys.version)"], capture_output=True, text=True
        )
        if version.stdout.rstrip("\n") != sys.version:
            raise WorkspaceError(
                f".venv was made with Python {version.stdout.split(' ')[0] or '(broken)'}, this is "
                f"{sys.version.split(' ')[0]}; run `python3 tools/dev.py clean --all`, or use that Python"
            )
    else:
        run_logged("making .venv", [sys.executable, "-m", "venv", str(VENV)], LOGS / "venv.log")
    STAMPS.mkdir(exist_ok=True)
    lines = REQUIREMENTS.read_text().splitlines()
    tools = [line for line in lines if line.partition("==")[0] in BUILD_TOOLS]
    command = [str(PYTHON), "-m", "pip", "install", "--no-compile", *tools]
    run_logged("installing the build tools", command, LOGS / "build_tools.log", build_environment())


def install_requirements() -> None:
    """Installs the pinned requirements unless they are up to date, and makes .venv if it is missing."""
    if requirements_outdated():
        make_environment()
        update_requirements()


def update_requirements(stop: threading.Event | None = None) -> None:
    # Python compiles a module at its first import; pip would compile all 10,000 on one core.
    command = [str(PYTHON), "-m", "pip", "install", "--no-compile", "-r", str(REQUIREMENTS)]
    log = LOGS / "requirements.log"
    run_logged("installing requirements", command, log, build_environment(), stop=stop)
    (STAMPS / "requirements").write_text(environment_context())


def current_stamps(options: Options) -> dict[str, str]:
    """Returns per package the stamp of an up-to-date installation with these options."""
    chosen = [os.environ.get(name, "") for name in BUILD_VARIABLES]
    context = [environment_context(BUILT_WITH), repr(options), *chosen]
    stamps: dict[str, str] = {}
    interfaces: dict[str, str] = {}
    for name, needed in upstream_packages(ROOT).items():
        below = [interfaces[other] for other in needed]
        stamps[name] = stamp(ROOT / "packages" / name, below, context)
        interfaces[name] = stamp(ROOT / "packages" / name, below, context, IMPLEMENTATION)
    return stamps


def core_names() -> list[str]:
    """Returns the leading packages that make a device."""
    return package_names()[: parse_core_count((ROOT / "pyproject.toml").read_text())]


def built_against() -> list[str]:
    """Returns the packages that others are built with, in build order."""
    upstream = upstream_packages()
    needed = {other for others in upstream.values() for other in others}
    return [name for name in upstream if name in needed]


def install_packages(options: Options, *, only: Sequence[str] | None = None) -> list[str]:
    """Installs the requirements, and builds and installs packages that are not up to date; returns the names
    of those built, in order. A package that depends on nothing is built beside the requirements.

    With ``only``, others are skipped unless installed, in which case they must match the runtime.
    """
    names = package_names()
    upstream = upstream_packages(ROOT)
    stamps = current_stamps(options)
    if only is not None:
        names = [name for name in names if name in only or (STAMPS / name).is_file()]
    outdated = [name for name in names if not matches(STAMPS / name, stamps[name])]
    steps = list(outdated)
    if requirements_outdated():
        make_environment()
        steps.insert(0, "requirements")
        upstream = {
            name: [*needed, "requirements"] if needed else needed for name, needed in upstream.items()
        }
        upstream["requirements"] = []

    def install(name: str, stop: threading.Event) -> None:
        if name == "requirements":
            update_requirements(stop)
            return
        command = [str(PYTHON), "-m", "pip", "install", "--no-deps", "--no-build-isolation", "-v"]
        command += [*options.config_settings(checked=True), "-e", str(ROOT / "packages" / name)]
        (STAMPS / name).unlink(missing_ok=True)
        log = LOGS / f"{name}.log"
        with file_times.kept(SITE, name):
            run_logged(f"building {name}", command, log, build_environment(), cwd=ROOT, stop=stop)
        (STAMPS / name).write_text(stamps[name])

    build_in_order(steps, upstream, install)
    return outdated


def wheels_of(name: str, folder: Path) -> Iterator[Path]:
    return folder.glob(f"{underscored(name)}-*.whl")


def build_in_order(names: Sequence[str], needs: Mapping[str, Sequence[str]], build) -> None:
    """Calls ``build(name, stop)`` for each name after its requirements are built, a few at a time.

    The first failure sets ``stop`` for running builds, prevents further ones, and is raised.
    """
    waiting, stop = list(names), threading.Event()
    with ThreadPoolExecutor(BUILDS) as pool:
        running: dict = {}
        try:
            while waiting or running:
                pending = {*waiting, *running.values()}
                ready = [name for name in waiting if not pending.intersection(needs[name])]
                for name in ready[: BUILDS - len(running)]:
                    waiting.remove(name)
                    running[pool.submit(build, name, stop)] = name
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    future.result()
        except BaseException:
            stop.set()
            raise


def build_wheels(names: Sequence[str], options: Options, target: Path) -> list[Path]:
    """Builds one wheel per package, for systems like this one, against the packages installed in .venv."""
    made = []
    for name in names:
        for old in wheels_of(name, target):
            old.unlink()
        command = [str(PYTHON), "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-v"]
        command += ["-w", str(target), *options.config_settings(), str(ROOT / "packages" / name)]
        run_logged(f"wheel of {name}", command, LOGS / f"{name}-wheel.log", build_environment(), cwd=ROOT)
        made += wheels_of(name, target)
    return made
