# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds the MUSA SDK, at build time and at load time.

`$MUSA_HOME` has precedence, and is final: a wrong `$MUSA_HOME` is an error, and no other place is searched.
Then the default place of the vendor's installer, then the `musa_emulator` package.

Also a script, for CMake, which runs before this package is installed: `python sdk.py` prints the home, and
`python sdk.py --kind` the kind of the SDK, or they exit with 1. Hence standard library only, and no relative
import.
"""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_HOME = "/usr/local/musa"
RUNTIME_LIBRARY = os.path.join("lib", "libmusart.so")
# The library of muDNN's C++ interface: that of SDK 5, whose libmudnn.so is the C interface, or of SDK 4.
MUDNN = ("libmudnncxx.so", "libmudnn.so")
# A kind of SDK is a segment of a local version (PEP 440).
KIND = re.compile(r"[a-z][a-z0-9]*")
# The file beside a library that compiled kernels, with the kind of SDK that they were compiled for.
DECLARATION = ".sdk"
EMULATOR = ("musa-emulator", "musa-emulator-mudnn", "musa-emulator-mccl")


class Sdk:
    """The outcome of a search. `home` is None if there is no SDK, and `reason` then has the cause.

    Attributes:
        home (str or None): the directory with `include/`, `lib/` and `bin/`.
        source (str or None): where it was found: `"MUSA_HOME"`, `"/usr/local/musa"` or `"musa_emulator"`.
        attempts (list of (str, str)): every searched place, with the finding.
    """

    def __init__(self, home: str | None, source: str | None, attempts: list[tuple[str, str]]) -> None:
        self.home = home
        self.source = source
        self.attempts = attempts

    def __repr__(self) -> str:
        return f"Sdk(home={self.home!r}, source={self.source!r})"

    @property
    def runtime_library(self) -> str | None:
        """Path of libmusart.so, or None."""
        return os.path.join(self.home, RUNTIME_LIBRARY) if self.home else None

    @property
    def version(self) -> str | None:
        """`musa_runtime.version` of the SDK's `version.json`, or None if the file has none."""
        return self._declared("musa_runtime", "version")

    @property
    def kind(self) -> str | None:
        """The kind of SDK whose device code runs here, None without an SDK.

        An SDK of this project declares it in `version.json` (`torch_musa.sdk`): "emulator" or "cuda". The
        vendor's declares nothing and is "musa" with its major version, such as "musa4"; "musa" alone if the
        file has no version.
        """
        if self.home is None:
            return None
        declared = self._declared("torch_musa", "sdk")
        if declared is not None and KIND.fullmatch(declared):
            return declared
        number = re.match(r"\d+", self.version or "")
        return f"musa{number[0] if number else ''}"

    def _declared(self, component: str, field: str) -> str | None:
        """Returns a text of `version.json`, or None."""
        if self.home is None:
            return None
        import json

        try:
            with open(os.path.join(self.home, "version.json"), encoding="utf-8") as file:
                value = json.load(file)[component][field]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return value if isinstance(value, str) else None

    @property
    def reason(self) -> str | None:
        """Why there is no SDK: every attempt, the likely causes, then the fixes. None if there is one."""
        if self.home is not None:
            return None
        lines = ["no MUSA SDK was found. Places searched:"]
        lines += [f"  {place}: {finding}" for place, finding in self.attempts]
        lines += [
            f"Likely causes: {self.causes}.",
            f"Fix: {self.command}",
            "Or, on a machine with a Moore Threads GPU: export MUSA_HOME=<directory of the MUSA SDK>",
        ]
        return "\n".join(lines)

    @property
    def causes(self) -> str:
        """Likely causes of a failed search."""
        if self.source == "MUSA_HOME":
            return "MUSA_HOME names another directory than the SDK's, or the SDK is incomplete"
        return "neither the MUSA SDK nor the emulator is installed"

    @property
    def command(self) -> str | None:
        """The shell command that makes an SDK available, None if there is one.

        Unsets $MUSA_HOME if one of the other places has an SDK; otherwise installs the emulator.
        """
        if self.home is not None:
            return None
        if self.source == "MUSA_HOME" and resolve({}).home is not None:
            return "unset MUSA_HOME"
        unset = "unset MUSA_HOME && " if self.source == "MUSA_HOME" else ""
        return unset + _install_command(*EMULATOR)

    def reinstall_command(self) -> str | None:
        """Returns the shell command that reinstalls this SDK, None for the vendor's."""
        return _install_command("musa-emulator", reinstall=True) if self.source == "musa_emulator" else None


def resolve(environ: Mapping[str, str] | None = None) -> Sdk:
    """Find the SDK. Never raises.

    Args:
        environ (mapping, optional): read in place of `os.environ`.
    """
    environ = os.environ if environ is None else environ
    attempts = []

    chosen = environ.get("MUSA_HOME")
    if chosen:
        finding = _examine(chosen)
        attempts.append((f"$MUSA_HOME={chosen}", finding))
        return Sdk(chosen if finding == "found" else None, "MUSA_HOME", attempts)
    attempts.append(("$MUSA_HOME", "not set"))

    finding = _examine(DEFAULT_HOME)
    attempts.append((DEFAULT_HOME, finding))
    if finding == "found":
        return Sdk(DEFAULT_HOME, DEFAULT_HOME, attempts)

    directories = _package_directories("musa_emulator")
    homes = _homes_in(directories)
    if not any(map(os.path.isdir, homes)):
        leftovers = f" ({directories[0]} holds no SDK)" if directories else ""
        attempts.append(("package musa_emulator", f"not installed{leftovers}"))
        return Sdk(None, None, attempts)
    for home in homes:
        finding = _examine(home)
        attempts.append((home, finding))
        if finding == "found":
            return Sdk(home, "musa_emulator", attempts)
    return Sdk(None, None, attempts)


def built_for(library: str) -> str | None:
    """The kind of SDK that a library's kernels were compiled for, None if no file beside it declares one."""
    try:
        with open(library + DECLARATION, encoding="utf-8", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


def runs_with(built: str, here: str) -> bool:
    """Whether kernels for one kind of SDK run with another: the same, or the vendor's of unknown version."""
    vendors = re.compile(r"musa\d*")
    unknown = "musa" in (built, here) and vendors.fullmatch(built) and vendors.fullmatch(here)
    return built == here or bool(unknown)


def title(kind: str) -> str:
    """The name of a kind of SDK in a message."""
    names = {"emulator": "the emulator", "cuda": "musa-cuda", "musa": "the MUSA SDK"}
    return names.get(kind) or re.sub(r"^musa(?=\d)", "MUSA SDK ", kind)


def emulator_home() -> str | None:
    """The SDK in the installed package musa_emulator, None without one."""
    homes = _homes_in(_package_directories("musa_emulator"))
    return next((home for home in homes if _examine(home) == "found"), None)


def library(name: str | tuple[str, ...], component: str, causes: str, wheel: str) -> str:
    """The path of a library of the SDK.

    Args:
        name (str or tuple of str): the file, such as `"libmccl.so"`; of several, such as `MUDNN`, the first
            that exists.
        component (str): the component of the SDK, such as `"muDNN"`.
        causes (str): likely causes if it is missing, for the error.
        wheel (str): the wheel with the emulator's version of the library.

    Raises:
        SdkNotFoundError: no SDK is found.
        LibraryLoadError: the SDK has no such library.
    """
    from .errors import LibraryLoadError, SdkNotFoundError

    found = resolve()
    if found.home is None:
        raise SdkNotFoundError(found.reason, found.command)  # type: ignore[arg-type]
    names = (name,) if isinstance(name, str) else name
    for candidate in names:
        path = os.path.join(found.home, "lib", candidate)
        if os.path.exists(path):
            return path
    command = _install_command(wheel, reinstall=True)
    into_sdk = f"install {component} of the MUSA SDK into {found.home}"
    if found.source == "musa_emulator":
        fixes = f"Fix: {command}"
    else:
        fixes = f"Fix: {into_sdk}\nOr, for the emulator: {command}"
        command = None
    missing = " or ".join(f"lib/{one}" for one in reversed(names))
    raise LibraryLoadError(
        f"the MUSA SDK at {found.home} has no {missing}.\nLikely causes: {causes}\n{fixes}", command
    )


def _examine(home: str) -> str:
    if not os.path.isdir(home):
        return "no such directory"
    if not os.path.exists(os.path.join(home, RUNTIME_LIBRARY)):
        return f"has no {RUNTIME_LIBRARY}"
    return "found"


def _homes_in(directories: list[str]) -> list[str]:
    # pip leaves folders of compiled Python files behind when it uninstalls; they contain no SDK.
    homes = [os.path.join(directory, "sdk") for directory in directories]
    return [home for home in homes if not os.path.isdir(home) or _has_sdk_files(home)]


def _has_sdk_files(home: str) -> bool:
    return any(
        os.path.exists(os.path.join(home, name)) for name in ("version.json", "include", RUNTIME_LIBRARY)
    )


def _install_command(*wheels: str, reinstall: bool = False) -> str:
    if not __package__:  # a script that CMake runs, most often in a checkout
        return "python3 tools/dev.py setup"
    from .installation import command

    return command(*wheels, reinstall=reinstall)


def _package_directories(name: str) -> list[str]:
    """Directories of an installed package, without importing it. An editable install has two: sources and
    build."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec else []


def _see_neighbours(script: str) -> None:
    """Let `resolve` find `musa_emulator` next to this package, whichever Python runs the script.

    CMake may have found an interpreter of another environment than the one it builds against.
    """
    site = os.path.abspath(os.path.join(os.path.dirname(script), *[os.pardir] * 4))
    if os.path.isdir(os.path.join(site, "musa_runtime", "share")) and site not in sys.path:
        sys.path.append(site)


def _main() -> int:
    _see_neighbours(__file__)
    # A path may contain bytes that are not text.
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    sdk = resolve()
    if sdk.home is None:
        print(f"musa_runtime: {sdk.reason}", file=sys.stderr)
        return 1
    print(sdk.kind if "--kind" in sys.argv[1:] else sdk.home)
    return 0


if __name__ == "__main__":
    # As a script, this file's directory comes first on the path and its random.py would hide the standard
    # library's.
    sys.path[:] = [entry for entry in sys.path if entry != os.path.dirname(os.path.abspath(__file__))]
    sys.exit(_main())
