# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The virtual environment and its packages: what is built, in which order, and what is up to date."""

import hashlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from . import ROOT, WorkspaceError, file_times, underscored
from .progress import run_logged

VENV = ROOT / ".venv"
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
MEMORY_PER_JOB = 2 * 10**9  # for a translation unit that includes torch's headers
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

    def config_settings(self, compiler: str = "", checked: bool = False) -> list[str]:
        """Returns pip arguments. Each variant has its own build folder, so that objects are not mixed.

        compiler: name of the compiler, unless it is the machine's default.
        checked: whether the containers of libstdc++ check their indices, so that a test that reads past
        the end of one fails instead of getting a neighbour's bytes. Wheels are built without.
        """
        variant = "-".join(filter(None, ["{wheel_tag}", compiler, "debug" * self.debug, self.sanitizer]))
        settings = [f"build-dir=build/{variant}", f"cmake.build-type={self.build_type}"]
        if compiler:
            # Otherwise libraries first get the build folder's search path, and keep its length.
            settings.append("cmake.define.CMAKE_BUILD_WITH_INSTALL_RPATH=ON")
        flags = self.sanitizer_flags
        if flags or checked:
            cxx = [os.environ.get("CXXFLAGS", ""), flags, "-D_GLIBCXX_ASSERTIONS" * checked]
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


def stamp(folder: Path, upstream: Sequence[str], context: Sequence[str]) -> str:
    """Returns a digest of everything that determines the result of installing ``folder``.

    Python files in ``src`` count by name only: an editable install imports them in place.
    """
    digest = hashlib.sha256()
    for part in [*context, *upstream]:
        digest.update(f"{len(part)}:{part}".encode())
    for path in source_files(folder):
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
    return env


def matches(stamp_file: Path, value: str) -> bool:
    return stamp_file.is_file() and stamp_file.read_text() == value


def environment_context() -> str:
    return f"{sys.version}\n{REQUIREMENTS.read_text()}"


def install_requirements() -> None:
    """Makes .venv with the pinned requirements unless it is up to date."""
    stamp_file = STAMPS / "requirements"
    context = environment_context()
    if PYTHON.exists() and matches(stamp_file, context):
        return
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
    command = [str(PYTHON), "-m", "pip", "install", "-r", str(REQUIREMENTS)]
    run_logged("installing requirements", command, LOGS / "requirements.log", build_environment())
    STAMPS.mkdir(exist_ok=True)
    stamp_file.write_text(context)


def current_stamps(options: Options) -> dict[str, str]:
    """Returns per package the stamp of an up-to-date installation with these options."""
    chosen = [os.environ.get(name, "") for name in BUILD_VARIABLES]
    context = [environment_context(), repr(options), *chosen]
    stamps: dict[str, str] = {}
    for name, needed in upstream_packages(ROOT).items():
        stamps[name] = stamp(ROOT / "packages" / name, [stamps[other] for other in needed], context)
    return stamps


def install_packages(options: Options, *, core: bool = False, wheels: Path | None = None) -> list[str]:
    """Builds and installs packages that are not up to date; returns the names of those built, in order.

    With ``core``, op packs are skipped unless installed, in which case they must match the runtime.
    wheels: a folder; packages with a wheel there are always installed from it instead of being built.
    """
    text = (ROOT / "pyproject.toml").read_text()
    names = package_names()
    upstream = upstream_packages(ROOT)
    stamps = current_stamps(options)
    if core:
        count = parse_core_count(text)
        names = names[:count] + [name for name in names[count:] if (STAMPS / name).is_file()]
    found = {name: wheel for name in names if wheels and (wheel := next(wheels_of(name, wheels), None))}
    outdated = [name for name in names if name in found or not matches(STAMPS / name, stamps[name])]

    def install(name: str, stop: threading.Event) -> None:
        command = [str(PYTHON), "-m", "pip", "install", "--no-deps"]
        if name in found:
            command += ["--force-reinstall", str(found[name])]
        else:
            command += ["--no-build-isolation", "-v", *options.config_settings(checked=True)]
            command += ["-e", str(ROOT / "packages" / name)]
        (STAMPS / name).unlink(missing_ok=True)
        log = LOGS / f"{name}.log"
        title = f"installing the wheel of {name}" if name in found else f"building {name}"
        with file_times.kept(SITE, name):
            run_logged(title, command, log, build_environment(), cwd=ROOT, stop=stop)
        # A wheel has copies of the Python files, so without its folder the package is built next
        # time.
        (STAMPS / name).write_text("from a wheel" if name in found else stamps[name])

    build_in_order(outdated, upstream, install)
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


def build_wheel(
    name: str,
    options: Options,
    target: Path,
    *,
    tree: Path = ROOT,
    env: Mapping[str, str] | None = None,
    compiler: str = "",
    python: Path = PYTHON,
    settings: Sequence[str] = (),
) -> Path:
    """Builds the wheel of a package against the packages installed for a Python (default: .venv's).

    tree: the folder that contains the package; env, compiler and settings (further arguments of pip) are for
    builds that differ from `setup`.
    """
    for old in wheels_of(name, target):
        old.unlink()
    command = [
        str(python),
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "-v",
        "-w",
        str(target),
    ]
    command += [*options.config_settings(compiler), *settings, str(tree / "packages" / name)]
    log = LOGS / "-".join(filter(None, [name, compiler, "wheel.log"]))
    run_logged(f"wheel of {name}", command, log, env or build_environment(), cwd=tree)
    made = list(wheels_of(name, target))
    if len(made) != 1:
        raise WorkspaceError(f"pip made {len(made)} wheels of {name} in {target}, one was expected")
    return made[0]


def build_wheels(names: Sequence[str], options: Options, target: Path) -> list[Path]:
    """Builds one wheel per package, for systems like this one."""
    return [build_wheel(name, options, target) for name in names]
