# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks of an installation, from torch to a computed result, with the command that repairs each problem.

Every check is isolated. A check that depends on a failed one is skipped, so that the first failure shown is
the cause.
"""

import functools
import os
import site
import warnings
from importlib import metadata

import torch

import musa_runtime
from musa_runtime import installation
from musa_runtime.errors import NoDeviceError, SettingError

from . import _impl, cuda_wheels, extras, pins, plugins, toolchain
from .checks import Outcome, Problem, Skip, Warn, render, run

__all__ = ["examine", "render"]


def examine(before=lambda title: None):
    """Runs every check in order, those of the packs last.

    Args:
        before (callable): is called with the title of each check before it runs.

    Returns:
        list of Outcome
    """
    outcomes = []
    failed = set()
    for title, check, needs in CHECKS:
        before(title)
        blocked = [need for need in needs if need in failed]
        outcome = Outcome(title, "skip", f"depends on: {blocked[0]}") if blocked else run(title, check)
        if outcome.status in ("fail", "skip"):
            failed.add(title)
        outcomes.append(outcome)
    return outcomes + _pack_checks(before, failed)


def _torch():
    have, need = torch.__version__, f"{musa_runtime.TORCH_MINOR}.*"
    if not have.startswith(musa_runtime.TORCH_MINOR + "."):
        raise Problem(
            f"torch {have}",
            f"torch {need}, which musa_runtime was compiled for",
            f"{installation.pip()} install 'torch=={need}'",
            "torch was upgraded alone, or musa_runtime was built against another torch",
        )
    return f"{have} (need {need})"


def _installed():
    """Returns (folder, distribution) pairs of this project's distributions by name, the one in use first."""
    found = {}
    for dist in metadata.distributions():
        name = (dist.name or "").lower().replace("_", "-")
        folder = os.path.realpath(dist.locate_file(""))
        if extras.is_family(name) and folder not in (other for other, _ in found.setdefault(name, [])):
            found[name].append((folder, dist))
    return found


def _versions():
    found = _installed()
    have = {name: places[0][1] for name, places in found.items()}
    for name, dist in have.items():
        for requirement, other, version in pins.unmet(dist.requires):
            raise Problem(
                f"{other} {version}",
                f"{requirement} (required by {name})",
                installation.command(name, other, reinstall=True),
                "one of the two was upgraded or installed alone",
            )
    for name, places in found.items():
        if len(places) > 1:
            raise Warn(
                "\n".join(f"{name} {dist.version} in {folder}" for folder, dist in places),
                f"{name} once; the first of these is in use",
                _hide_all_but_one(name, [folder for folder, _ in places]),
                "PYTHONPATH names another installation; one is the user's and one the system's",
            )
    return (
        ", ".join(f"{name} {dist.version}" for name, dist in sorted(have.items()))
        or "not installed as distributions"
    )


def _hide_all_but_one(name, folders):
    if any(folder in _python_path() for folder in folders):
        return "unset PYTHONPATH"
    if os.path.realpath(site.getusersitepackages()) in folders:
        return "export PYTHONNOUSERSITE=1"
    return f"{installation.pip()} uninstall --yes {name}"


def _python_path():
    return [os.path.realpath(part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]


def _import_path():
    """Checks that this project's packages are imported from their installation."""
    for folder in _python_path():
        if any(folder == place for places in _installed().values() for place, _ in places):
            continue  # a complete installation; "versions" compares it with the others
        hidden = [
            name for name in ("torch_musa", "musa_runtime") if os.path.isdir(os.path.join(folder, name))
        ]
        if hidden:
            kind = Problem if musa_runtime.load().error or _impl.failure else Warn
            raise kind(
                f"{folder}, which is on PYTHONPATH, has folders {' and '.join(hidden)}",
                "no folder that hides the installed packages",
                "unset PYTHONPATH",
                "PYTHONPATH contains a source checkout, which has no compiled libraries",
            )
    return os.path.dirname(musa_runtime.__file__)


def _activation():
    error = _impl.failure
    if error is not None:
        command = installation.command("torch-musa", "musa-runtime", reinstall=True)
        causes = "an incomplete installation; files of several versions"
        raise Problem(f"{type(error).__name__}: {error}", "activation without error", command, causes)
    result = musa_runtime.load()
    if result.status == "absent":
        raise result.error.with_traceback(None)
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        raise Warn(
            "TORCH_DEVICE_BACKEND_AUTOLOAD disables torch's loading of backends",
            'no change if programs import torch_musa; otherwise they cannot use "musa"',
            "unset TORCH_DEVICE_BACKEND_AUTOLOAD",
            "the variable was set for another backend",
        )
    return "torch.musa is registered"


def _sdk():
    result = musa_runtime.load()
    sdk = result.sdk or musa_runtime.sdk.resolve()
    if sdk.home is None:
        tried = "\n".join(f"{place}: {finding}" for place, finding in sdk.attempts)
        raise Problem(tried, "a directory with lib/libmusart.so", sdk.command, sdk.causes)
    return f"{sdk.home} (from {sdk.source}, version {sdk.version or 'unknown'})"


def _libraries():
    result = musa_runtime.load()
    if result.error is not None:
        raise result.error.with_traceback(None)
    return f"loaded in {result.seconds * 1e3:.1f} ms, ABI {musa_runtime.ABI}"


def _allocator_settings():
    variables = [name for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_MUSA_ALLOC_CONF") if os.environ.get(name)]
    from musa_runtime import _load

    try:
        _load.extension().load_allocator_environment()
    except ValueError as error:
        wrong = [name for name in variables if str(error).startswith(name)] or ["PYTORCH_CUDA_ALLOC_CONF"]
        raise Problem(
            str(error).splitlines()[0],
            "settings of the musa allocator",
            f"unset {wrong[0]}",
            "a misspelled key or value",
        ) from error
    return ", ".join(f"{name}={os.environ[name]}" for name in variables) or "as built"


def _devices():
    count = torch.musa.device_count()
    if count == 0:
        visible = os.environ.get("MUSA_VISIBLE_DEVICES")
        if visible is not None:
            have, command = f"0 devices (MUSA_VISIBLE_DEVICES={visible!r})", "unset MUSA_VISIBLE_DEVICES"
            causes = "the variable hides all devices, or names a missing one"
        else:
            have, command = "0 devices", "mthreads-gmi   (lists the devices that the driver finds)"
            causes = "the kernel driver is not loaded, or a container was started without the devices"
        raise Problem(have, "at least one visible device", command, causes)
    names = [torch.musa.get_device_name(index) for index in range(count)]
    return f"{count}: {', '.join(names)}"


def _allocation():
    tensor = torch.full((1024,), 3, dtype=torch.int32, device="musa")
    returned = tensor.cpu()
    if not bool((returned == 3).all()):
        raise Problem(f"wrote 3, read {returned[:4].tolist()} ...", "the values that were written")
    del tensor
    free, total = torch.musa.mem_get_info()
    return f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"


def _operator():
    left = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    have = (left.to("musa") @ left.T.to("musa")).cpu()
    need = left @ left.T
    if not torch.allclose(have, need):
        raise Problem(
            f"a 3x4 matmul gave {have.tolist()}",
            f"{need.tolist()}",
            "export TORCH_MUSA_OPS=aten::mm=host",
            "a defect of the library that serves aten::mm: python -m torch_musa ops aten::mm",
        )
    return f"aten::mm served by {torch.musa.ops.explain('aten::mm')['provider']}"


def _provider_order():
    """Checks that the providers in TORCH_MUSA_OPS exist."""
    from musa_runtime import policy
    from musa_runtime.errors import UnknownOpError, UnknownProviderError

    plugins.load_packs(strict=False)
    value = os.environ.get("TORCH_MUSA_OPS")
    try:
        policy.check_environment()
    except (UnknownOpError, UnknownProviderError, ValueError) as error:
        causes = "a misspelled name, or a pack that is not installed or failed to load"
        have = f"TORCH_MUSA_OPS={value!r}: {str(error).splitlines()[0]}"
        raise Problem(have, "providers of loaded packs", "unset TORCH_MUSA_OPS", causes) from error
    return value or "as built"


def _measured_orders():
    """Checks that the file of `python -m torch_musa tune`, if there is one, holds for this process."""
    from musa_runtime import measured_orders

    if torch.musa.device_count() == 0:
        return "not read without a device"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", measured_orders.MeasuredOrdersWarning)  # reported here
            torch.musa.init()
    except RuntimeError as error:
        if not (isinstance(error, SettingError) and str(error).startswith(measured_orders.VARIABLE)):
            return "not read, because the device cannot be used"  # the next check reports the cause
        raise Problem(
            str(error).splitlines()[0],
            "a file that python -m torch_musa tune wrote",
            error.command,
            "a misspelled path, or a damaged file",
        ) from error
    found = measured_orders.state()
    if found.problem:
        raise Warn(
            f"{found.path}: {found.problem}",
            "orders that were measured on this device and with these versions",
            "python -m torch_musa tune",
            "a package was installed or upgraded, or the device was changed",
        )
    if not found.applied:
        return "none; python -m torch_musa tune measures them"
    return f"{len(found.content['operators'])} operators, measured {found.content.get('date')}, {found.path}"


def _packs():
    records = plugins.load_packs(strict=False)
    failures = [record for record in records if record.error is not None]
    if failures:
        texts = "\n".join(str(record.error) for record in failures)
        happened = [
            line for line in texts.splitlines() if not line.startswith(("Likely cause", "Fix:", "Or, "))
        ]
        commands = [record.error.command for record in failures if record.error.command]
        # Fixes in words, from errors without a command.
        commands = commands or [line[5:] for line in texts.splitlines() if line.startswith("Fix: ")]
        causes = [line.partition(": ")[2] for line in texts.splitlines() if line.startswith("Likely cause")]
        raise Problem(
            "\n".join(happened),
            "every installed pack loaded",
            " && ".join(dict.fromkeys(commands)),
            " ".join(dict.fromkeys(causes)),
        )
    told = ", ".join(f"{record.name} {record.version} {record.status}" for record in records)
    if any(record.status == "disabled" for record in records):
        raise Warn(
            f"{told} (TORCH_MUSA_DISABLE_PACKS={os.environ['TORCH_MUSA_DISABLE_PACKS']!r})",
            "no change if intended: the next provider serves the operators of a disabled pack",
            "unset TORCH_MUSA_DISABLE_PACKS",
            "the variable was set on purpose, or for another program",
        )
    return told or "none installed"


CHECKS = [
    ("import path", _import_path, ()),
    ("torch", _torch, ("import path",)),
    ("versions", _versions, ()),
    ("activation", _activation, ("torch",)),
    ("MUSA SDK", _sdk, ()),
    ("libraries", _libraries, ("torch", "activation", "MUSA SDK")),
    ("allocator settings", _allocator_settings, ("libraries",)),
    ("packs", _packs, ("libraries",)),
    ("provider order", _provider_order, ("libraries",)),
    # Before the first check that uses the device, because that reads the file.
    ("measured orders", _measured_orders, ("libraries", "allocator settings", "provider order")),
    ("devices", _devices, ("libraries", "measured orders")),
    ("allocation", _allocation, ("libraries", "allocator settings", "devices", "provider order")),
    ("operator", _operator, ("libraries", "devices", "allocation")),
    ("packages built for CUDA", cuda_wheels.check, ("torch",)),
    *toolchain.CHECKS,
]


def _pack_checks(before, failed):
    """Runs the checks of the packs. Those that find no device depend on the check "devices", if it failed."""

    def unless_blocked(check):
        try:
            return check()
        except NoDeviceError as error:
            if "devices" in failed:
                raise Skip("depends on: devices") from error
            raise

    outcomes = []
    for record, checks, error in plugins.hook_results("musa_doctor_checks"):
        if error is not None:
            text = f"musa_doctor_checks raised {error!r}"
            outcomes.append(Outcome(f"{record.name}: checks", "fail", text, causes="a defect of the pack"))
        for title, check in checks or ():
            before(f"{record.name}: {title}")
            outcomes.append(run(f"{record.name}: {title}", functools.partial(unless_blocked, check)))
    return outcomes
