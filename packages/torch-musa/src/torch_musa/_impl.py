# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Activation, once, on import: load the runtime, rename PrivateUse1, register `torch.musa`. Never raises.

An error is stored in `failure` or `musa_runtime.load().error`, for the first use of the device and for the
doctor. If torch cannot use the installation at all, one warning is also shown.
"""

from __future__ import annotations

import contextlib
import sys
import types
import warnings
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

failure: Exception | None = None


def _activate() -> None:
    import musa_runtime

    _check_release(musa_runtime.__version__)
    result = musa_runtime.load()
    from . import sdk_version

    sdk_version.register(result)
    if result.status == "absent":
        _explain_absence(result.error)
        return
    from musa_runtime import _compat

    _compat.rename_privateuse1()
    from musa_runtime import processes, recurrent_networks

    processes.register()
    recurrent_networks.register()
    _expose(register=True)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    from . import (
        compiler,
        engine_threads,
        import_hooks,
        live_operators,
        missing_backends,
        missing_op_packs,
        missing_switches,
        musa_backend,
    )

    engine_threads.register()
    if result.status == "loaded":
        missing_op_packs.register()
    musa_backend.register()
    import_hooks.run(torch.musa)  # type: ignore[attr-defined]
    # After the hooks, because a hook may add the module or the backend itself.
    import_hooks.add_placeholders()
    missing_backends.register()
    compiler.register()
    missing_switches.warn()
    live_operators.register()


def _check_release(runtime: str) -> None:
    """Raises a MusaError if musa-runtime is of another release, whose interface may differ."""
    from ._version import __version__

    if runtime.split(".")[:2] != __version__.split(".")[:2]:
        from musa_runtime.errors import MusaError
        from musa_runtime.installation import command

        fix = command("torch-musa", "musa-runtime", reinstall=True)
        raise MusaError(
            "torch-musa and musa-runtime are of different releases, so the musa device cannot be used.\n"
            f"  have: torch-musa {__version__}, musa-runtime {runtime}\n"
            f"  need: musa-runtime {'.'.join(__version__.split('.')[:2])}.*\n"
            "Likely causes: one of the two was upgraded or installed alone; PYTHONPATH names another copy.\n"
            f"Fix: {fix}",
            fix,
        )


@contextlib.contextmanager
def _unfinished_modules_hidden() -> Iterator[None]:
    """Removes modules of musa_runtime whose import is in progress from `sys.modules`.

    If a program imports such a module before torch, the `import torch` inside it leads here while the module
    is still empty, so `torch.musa` could not import names from it. Once removed, `torch.musa` imports the
    module again, completely, and Python returns that module from the interrupted import as well. Modules
    that activation does not import are restored, and their import continues.
    """
    hidden = {
        name: module
        for name, module in sys.modules.items()
        if name.startswith("musa_runtime.")
        and getattr(getattr(module, "__spec__", None), "_initializing", False)
    }
    for name in hidden:
        del sys.modules[name]
    try:
        yield
    finally:
        for name, module in hidden.items():
            sys.modules.setdefault(name, module)


def _explain_absence(error: BaseException | None) -> None:
    """Makes uses of the device raise `error`, as far as torch's interfaces allow, and warns once."""
    from musa_runtime.errors import TorchVersionError

    # After renaming, torch can parse device="musa" and reach torch.musa, which raises the recorded
    # error. But torch then regards musa as its accelerator, so a GPU that it does support would
    # lose pinned memory; and if another backend has renamed PrivateUse1, renaming fails.
    rename = isinstance(error, TorchVersionError) and not _has_accelerator()
    if rename:
        from musa_runtime import _compat

        _compat.rename_privateuse1()
    _expose(register=rename)
    if rename:
        torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    warnings.warn(f"the musa device cannot be used: {error}", stacklevel=1)


def _has_accelerator() -> bool:
    try:
        return torch.accelerator.is_available()
    except (AttributeError, RuntimeError):  # an unknown version of torch: do not change its devices
        return True


def _expose(register: bool) -> None:
    from . import musa, pack_modules

    pack_modules.install_finders()
    if register:
        torch._register_device_module("musa", musa)
    else:  # torch's function requires a device type that torch can parse
        torch.musa = musa  # type: ignore[attr-defined]
        sys.modules["torch.musa"] = musa
    # torch registers only the module, not its submodules and names.
    for name in (*musa.__all__, "_utils"):
        member = vars(musa).get(name)
        if isinstance(member, types.ModuleType):
            sys.modules[f"torch.musa.{name}"] = member


try:
    with _unfinished_modules_hidden():
        _activate()
except Exception as error:  # noqa: BLE001 - nothing may break `import torch`
    failure = error
    fix = "Fix: python -m torch_musa doctor, which names the cause and the command that repairs it"
    named = getattr(error, "command", None) is not None  # the message already contains causes and command
    text = str(error) if named else f"{error!r}.\n{fix}"
    warnings.warn(f"torch_musa could not be activated: {text}", stacklevel=1)
