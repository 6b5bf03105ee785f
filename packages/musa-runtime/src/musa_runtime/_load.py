# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Loads the runtime's libraries in order, and records every failure.

torch minor -> SDK -> libmusart.so -> libmusa_runtime.so -> ABI -> `_C`. The torch minor is compared in Python
first, because a library of another minor may crash on load instead of failing. If a later step fails,
libmusa_unavailable.so is loaded instead: renaming PrivateUse1 makes musa torch's accelerator, and torch
calls its accelerator's hooks even for CPU work (pinned memory, `torch.accelerator`); with hooks that report
"no device", that work continues.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

from . import link_names, sdk
from ._build import ABI, NEWEST_TORCH, OLDEST_TORCH
from .errors import (
    AbiMismatchError,
    BackendConflictError,
    LibraryLoadError,
    MusaError,
    SdkNotFoundError,
    TorchVersionError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, TypeVar

    from .sdk import Sdk

    _Error = TypeVar("_Error", bound=BaseException)

RUNTIME = "lib/libmusa_runtime.so"
UNAVAILABLE = "lib/libmusa_unavailable.so"


class LoadResult:
    """The result of loading.

    Attributes:
        status (str): `"loaded"`; `"unavailable"` (torch has hooks that answer "no device"); or `"absent"`
            (no hooks are registered, so PrivateUse1 must not be renamed).
        error (MusaError or None): why the runtime is not loaded.
        sdk (musa_runtime.sdk.Sdk or None): the SDK, None if the search was not reached.
        attempts (list of (str, str)): each step taken, with `"ok"` or its failure.
        seconds (float): time spent.
        extension (module or None): `musa_runtime._C`.
    """

    def __init__(self) -> None:
        self.status = "absent"
        self.error: MusaError | None = None
        self.sdk: Sdk | None = None
        self.attempts: list[tuple[str, str]] = []
        self.seconds = 0.0
        self.extension: Any = None

    def __repr__(self) -> str:
        return f"LoadResult(status={self.status!r}, error={self.error!r}, seconds={self.seconds:.4f})"

    @property
    def reason(self) -> str | None:
        """The error as text, None when loaded."""
        return None if self.error is None else str(self.error)


_lock = threading.RLock()
_result: LoadResult | None = None


def load() -> LoadResult:
    """Load the runtime once; later calls return the same :class:`LoadResult`. Never raises."""
    global _result
    if _result is not None:
        return _result
    # Outside the lock: importing torch runs the autoload, which calls this function again and does the work.
    import torch

    with _lock:
        if _result is None:
            start = time.perf_counter()
            result = LoadResult()
            try:
                _load_runtime(result, torch)
                result.status = "loaded"
            except MusaError as error:
                result.error = error
            except Exception as error:  # noqa: BLE001 - nothing may break `import torch`
                result.error = _caused(
                    LibraryLoadError(f"loading musa_runtime failed unexpectedly: {error!r}"), error
                )
            if result.error is not None:
                _load_substitute(result)
            result.seconds = time.perf_counter() - start
            _result = result
    return _result


def torch_minor() -> str:
    """Returns the minor of torch that the libraries were compiled for, as "2.13".

    Raises:
        TorchVersionError: if the installation has no record of it.
    """
    try:
        from ._torch_minor import TORCH_MINOR
    except ImportError as error:
        command = reinstall_command()
        raise TorchVersionError(
            "musa_runtime has no record of the torch it was compiled for (_torch_minor.py).\n"
            "Likely causes: an interrupted installation; Python files newer than the compiled libraries.\n"
            f"Fix: {command}",
            command,
        ) from error
    return TORCH_MINOR


def reinstall_command() -> str:
    """Returns the command that reinstalls this package."""
    from .installation import command  # on errors only: it imports importlib.metadata

    return command("musa-runtime", reinstall=True)


def extension() -> Any:
    """The `_C` module.

    Raises:
        MusaError: the recorded cause (:class:`SdkNotFoundError`, :class:`TorchVersionError`, ...) when the
        runtime is not loaded.
    """
    result = _result or load()
    if result.error is not None:
        raise result.error.with_traceback(None)
    return result.extension


def package_file(relative: str) -> str | None:
    """Absolute path of a file of this package, or None.

    An editable install keeps Python files in the source tree and compiled ones in site-packages; `__path__`
    names both.
    """
    for directory in sys.modules[__package__].__path__:
        path = os.path.join(directory, *relative.split("/"))
        if os.path.exists(path):
            return path
    return _recorded_file(relative)


def _recorded_file(relative: str) -> str | None:
    # Slow (reads the wheel's RECORD); used only if `__path__` does not lead to the file.
    from importlib.metadata import PackageNotFoundError, files

    try:
        recorded = files("musa-runtime") or ()
    except PackageNotFoundError:
        return None
    for file in recorded:
        if file.as_posix() == f"musa_runtime/{relative}":
            path = str(file.locate())
            return path if os.path.exists(path) else None
    return None


def _load_runtime(result: LoadResult, torch: ModuleType) -> None:
    _check_torch(torch.__version__)
    result.attempts.append((f"torch {torch.__version__}", "ok"))

    _check_slot(torch)

    result.sdk = sdk.resolve()
    if result.sdk.home is None:
        result.attempts.append(("MUSA SDK", "not found"))
        raise SdkNotFoundError(result.sdk.reason, result.sdk.command)  # type: ignore[arg-type]
    result.attempts.append((f"MUSA SDK {result.sdk.home} (from {result.sdk.source})", "ok"))

    _open(result, result.sdk.runtime_library, result.sdk.reinstall_command)  # type: ignore[arg-type]
    library = _open(result, package_file(RUNTIME) or RUNTIME, reinstall_command)
    _check_abi(library)
    result.attempts.append((f"ABI {ABI}", "ok"))

    try:
        from . import _C
    except ImportError as error:
        result.attempts.append(("musa_runtime._C", str(error)))
        headline = "the extension module musa_runtime._C cannot be imported"
        raise _load_error(result, headline, reinstall_command()) from error
    result.attempts.append(("musa_runtime._C", "ok"))
    result.extension = _C


def _check_torch(version: str) -> None:
    have = ".".join(version.split("+")[0].split(".")[:2])
    need = torch_minor()
    if have != need:
        from .installation import pip

        command = f"{pip()} install 'torch=={need}.*'"
        raise TorchVersionError(
            "musa_runtime was compiled for another minor of torch, whose C++ ABI differs.\n"
            f"  have: torch {version}\n"
            f"  need: torch {need}.*\n"
            f"Likely causes: torch was upgraded alone, or musa_runtime was built against another torch.\n"
            f"Fix: {command}\n"
            f"Or install a torch_musa that was built for torch {have}: this version can be built for torch "
            f"{OLDEST_TORCH} to {NEWEST_TORCH}, and its wheels name theirs (+torch{need}).",
            command,
        )


def _check_slot(torch: ModuleType) -> None:
    # torch accepts one set of hooks; a second registration ends the process in a static initialiser.
    owner = torch._C._get_privateuse1_backend_name()
    if owner not in ("privateuseone", "musa"):
        raise BackendConflictError(
            f"the backend {owner!r} has taken PrivateUse1, which torch grants to one backend per process.\n"
            "Likely causes: two device backends are installed, and torch loads both.\n"
            "Fix: uninstall one of the two, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one to use"
        )


def _check_abi(library: ctypes.CDLL) -> None:
    try:
        have = library.musa_runtime_abi()
    except AttributeError:
        have = "none"
    if have != ABI:
        command = reinstall_command()
        raise AbiMismatchError(
            "libmusa_runtime.so and the Python files of musa_runtime come from different builds.\n"
            f"  have: ABI {have} in {library._name}\n"
            f"  need: ABI {ABI}\n"
            "Likely causes: an interrupted installation; another copy of the Python files on PYTHONPATH.\n"
            f"Fix: {command}",
            command,
        )


def _open(result: LoadResult, path: str, fix: Callable[[], str | None]) -> ctypes.CDLL:
    try:
        library = link_names.load(path, result.sdk, link_names.open_globally)
    except OSError as error:
        result.attempts.append((path, str(error)))
        if found := link_names.explain(result.sdk, "musa-runtime", os.path.basename(path), str(error)):
            raise found from error
        raise _load_error(result, f"{os.path.basename(path)} cannot be loaded", fix()) from error
    result.attempts.append((path, "ok"))
    return library


def _load_error(result: Any, headline: str, command: str | None) -> LibraryLoadError:
    lines = [f"{headline}. Steps, in order:"]
    lines += [f"  {step}: {outcome}" for step, outcome in result.attempts]
    lines += [
        "Likely causes: an incomplete installation; another build of torch than the one compiled against;",
        "an SDK whose libraries need a newer system or driver.",
        f"Fix: {command or f'install the MUSA SDK at {result.sdk.home} again, and the driver that it needs'}",
    ]
    return LibraryLoadError("\n".join(lines), command)


def _load_substitute(result: LoadResult) -> None:
    """Registers hooks that report why there is no device, unless loading a library is unsafe."""
    if isinstance(result.error, (TorchVersionError, BackendConflictError)):
        return
    if any(step.endswith(os.path.basename(RUNTIME)) and outcome == "ok" for step, outcome in result.attempts):
        # The runtime's own hooks are registered already, and torch takes hooks only once.
        result.status = "unavailable"
        return
    path = package_file(UNAVAILABLE) or UNAVAILABLE
    try:
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        set_reason = library.musa_runtime_set_unavailable_reason
        set_reason.argtypes = [ctypes.c_char_p]
        set_reason.restype = None
        # Paths may contain bytes that are not text; torch decodes the reason as UTF-8 when it raises it.
        set_reason(str(result.error).encode("utf-8", "backslashreplace"))
    except (OSError, AttributeError) as error:
        result.attempts.append((path, str(error)))
        return
    result.attempts.append((path, "ok"))
    result.status = "unavailable"


def _caused(error: _Error, cause: BaseException) -> _Error:
    error.__cause__ = cause
    return error
