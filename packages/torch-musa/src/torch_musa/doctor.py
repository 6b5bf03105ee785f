# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks of an installation, from torch to a computed result. A check that fails says: have, need, command.

Every check is isolated; one that rests on a failed one is skipped, so that the first failure shown is the
cause.
"""

import os
from dataclasses import dataclass
from importlib import metadata

import torch

import musa_runtime

from . import _impl, plugins


class CheckFailed(Exception):
    """A check's verdict: what is there, what is needed, and the command that mends it."""

    def __init__(self, have, need, command):
        super().__init__(have)
        self.have, self.need, self.command = have, need, command


@dataclass
class Outcome:
    """One check's result. `status` is `"ok"`, `"fail"` or `"skip"`."""

    title: str
    status: str
    detail: str = ""
    need: str = ""
    command: str = ""

    def as_dict(self):
        return dict(self.__dict__)


def examine():
    """Run every check in order, the packs' own last.

    Returns:
        list of Outcome
    """
    outcomes = []
    failed = set()
    for title, check, needs in CHECKS:
        blocked = [need for need in needs if need in failed]
        outcome = Outcome(title, "skip", f"rests on: {blocked[0]}") if blocked else _run(title, check)
        if outcome.status != "ok":
            failed.add(title)
        outcomes.append(outcome)
    return outcomes + _pack_checks()


def render(outcomes):
    """The outcomes as text."""
    marks = {"ok": "[ ok ]", "fail": "[FAIL]", "skip": "[skip]"}
    width = max(len(outcome.title) for outcome in outcomes)
    lines = []
    for outcome in outcomes:
        indent = "\n" + " " * (width + 9)
        if outcome.status != "fail":
            lines.append(
                f"{marks[outcome.status]} {outcome.title:<{width}}  {outcome.detail}".replace("\n", indent)
            )
            continue
        lines.append(f"{marks['fail']} {outcome.title}")
        for label, text in (("have", outcome.detail), ("need", outcome.need), ("command", outcome.command)):
            if text:
                lines.append(f"       {label + ':':<9}{text}".replace("\n", "\n" + " " * 16))
    failures = sum(outcome.status == "fail" for outcome in outcomes)
    lines.append("")
    lines.append("all is well" if not failures else f"{failures} check(s) failed; begin with the first")
    return "\n".join(lines)


def _run(title, check):
    try:
        return Outcome(title, "ok", str(check() or ""))
    except CheckFailed as verdict:
        return Outcome(title, "fail", verdict.have, verdict.need, verdict.command)
    except Exception as error:  # noqa: BLE001 - it must not hide the remaining checks
        # torch's dispatcher explains itself in a hundred lines; the first ones say it.
        text = "\n".join(str(error).splitlines()[:8])
        return Outcome(
            title, "fail", f"{type(error).__name__}: {text}", "no exception", "python -m torch_musa env"
        )


def _torch():
    have, need = torch.__version__, f"{musa_runtime.TORCH_MINOR}.*"
    if not have.startswith(musa_runtime.TORCH_MINOR + "."):
        raise CheckFailed(f"torch {have}", f"torch {need}", f"pip install 'torch=={need}'")
    return f"{have} (need {need})"


def _versions():
    have = {}
    for dist in metadata.distributions():
        name = (dist.name or "").lower().replace("_", "-")
        if name == "torch-musa" or name.startswith("musa-"):
            have.setdefault(name, dist)
    for name, dist in have.items():
        for requirement in dist.requires or ():
            _check_pin(name, requirement, have)
    return (
        ", ".join(f"{name} {dist.version}" for name, dist in sorted(have.items()))
        or "not installed as distributions"
    )


def _check_pin(name, requirement, have):
    # Only pins of the form "musa-runtime==0.1.*", which are all this family uses; pip checked the rest at
    # installation.
    pinned, equals, version = requirement.partition(";")[0].partition("==")
    other = have.get(pinned.strip().lower().replace("_", "-"))
    if not equals or other is None or ";" in requirement:
        return
    prefix = version.strip().removesuffix("*")
    matches = other.version.startswith(prefix) if prefix != version.strip() else other.version == prefix
    if not matches:
        raise CheckFailed(
            f"{other.name} {other.version}",
            f"{requirement.strip()} (asked for by {name})",
            f"pip install --upgrade {name} {other.name}",
        )


def _activation():
    if _impl.failure is not None:
        raise CheckFailed(
            f"{type(_impl.failure).__name__}: {_impl.failure}", "activation without error", "pip check"
        )
    return "torch.musa is registered"


def _sdk():
    result = musa_runtime.load()
    sdk = result.sdk or musa_runtime.sdk.resolve()
    if sdk.home is None:
        tried = "\n".join(f"{place}: {finding}" for place, finding in sdk.attempts)
        command = (
            "unset MUSA_HOME, or set it to the directory of the MUSA SDK"
            if sdk.source
            else "pip install torch-musa[emulator]"
        )
        raise CheckFailed(tried, "a directory with lib/libmusart.so", command)
    return f"{sdk.home} (from {sdk.source}, version {sdk.version or 'unknown'})"


def _libraries():
    result = musa_runtime.load()
    if result.error is not None:
        tried = "\n".join(f"{step}: {outcome}" for step, outcome in result.attempts)
        raise CheckFailed(
            f"{type(result.error).__name__}\n{tried}",
            "every library loaded",
            "pip install --force-reinstall --no-deps musa-runtime",
        )
    return f"loaded in {result.seconds * 1e3:.1f} ms, ABI {musa_runtime.ABI}"


def _allocator_settings():
    variables = [name for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_MUSA_ALLOC_CONF") if os.environ.get(name)]
    from musa_runtime import _load

    try:
        _load.extension().load_allocator_environment()
    except ValueError as error:
        wrong = [name for name in variables if str(error).startswith(name)] or ["PYTORCH_CUDA_ALLOC_CONF"]
        raise CheckFailed(
            str(error).splitlines()[0], "settings that the allocator knows", f"unset {wrong[0]}"
        ) from error
    return ", ".join(f"{name}={os.environ[name]}" for name in variables) or "as built"


def _devices():
    count = torch.musa.device_count()
    if count == 0:
        visible = os.environ.get("MUSA_VISIBLE_DEVICES")
        have = f"0 devices (MUSA_VISIBLE_DEVICES={visible!r})" if visible is not None else "0 devices"
        command = (
            "unset MUSA_VISIBLE_DEVICES"
            if visible is not None
            else "mthreads-gmi   (does the driver see a GPU?)"
        )
        raise CheckFailed(have, "at least one visible device", command)
    names = [torch.musa.get_device_name(index) for index in range(count)]
    return f"{count}: {', '.join(names)}"


def _allocation():
    tensor = torch.full((1024,), 3, dtype=torch.int32, device="musa")
    returned = tensor.cpu()
    if not bool((returned == 3).all()):
        raise CheckFailed(
            f"wrote 3, read {returned[:4].tolist()} ...",
            "the values that were written",
            "python -m torch_musa env",
        )
    del tensor
    free, total = torch.musa.mem_get_info()
    return f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"


def _operator():
    left = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    have = (left.to("musa") @ left.T.to("musa")).cpu()
    need = left @ left.T
    if not torch.allclose(have, need):
        raise CheckFailed(
            f"a 3x4 matmul gave {have.tolist()}", f"{need.tolist()}", "python -m torch_musa ops aten::mm"
        )
    return f"aten::mm served by {torch.musa.ops.explain('aten::mm')['provider']}"


def _packs():
    records = plugins.load_packs(strict=False)
    failures = [record for record in records if record.error is not None]
    if failures:
        raise CheckFailed(
            "\n".join(str(record.error) for record in failures),
            "every installed pack loaded, or disabled on purpose",
            f"export TORCH_MUSA_DISABLE_PACKS={','.join(record.name for record in failures)}",
        )
    return (
        ", ".join(f"{record.name} {record.version} {record.status}" for record in records) or "none installed"
    )


CHECKS = [
    ("torch", _torch, ()),
    ("versions", _versions, ()),
    ("activation", _activation, ()),
    ("MUSA SDK", _sdk, ()),
    ("libraries", _libraries, ("torch", "MUSA SDK")),
    ("allocator settings", _allocator_settings, ("libraries",)),
    ("devices", _devices, ("libraries",)),
    ("packs", _packs, ("libraries",)),
    ("allocation", _allocation, ("libraries", "allocator settings", "devices")),
    ("operator", _operator, ("libraries", "devices", "allocation")),
]


def _pack_checks():
    outcomes = []
    for record, checks, error in plugins.hook_results("musa_doctor_checks"):
        if error is not None:
            outcomes.append(
                Outcome(
                    f"{record.name}: checks",
                    "fail",
                    f"musa_doctor_checks raised {error!r}",
                    "no exception",
                    "",
                )
            )
        for title, check in checks or ():
            outcomes.append(_run(f"{record.name}: {title}", check))
    return outcomes
