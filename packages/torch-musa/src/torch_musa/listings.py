# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Output of `packs`, `ops` and `env`: as plain data (also used for JSON), and as text."""

import os
import platform
import shutil
import subprocess

import torch

import musa_runtime
from musa_runtime import installation, measured_orders
from musa_runtime import ops as registry
from musa_runtime.command_line import near
from musa_runtime.errors import NoDeviceError

from . import extras, plugins

# Packages whose version is often relevant to a bug report.
NEIGHBOURS = ("numpy", "pluggy", "mthreads-ml-py", "torchvision", "torchaudio", "triton", "transformers")
COMPILERS = ("c++", "cmake", "ninja")
# Prefixes of environment variables.
SETTINGS = (
    "MUSA_", "TORCH_", "PYTORCH_", "OMP_", "KMP_", "MKL_", "LD_LIBRARY_PATH", "LD_PRELOAD",
)  # fmt: skip


def packs():
    """Loads packs and returns for each: name, dist, version, status, seconds, providers, ops, summary, error.

    If the runtime is not loaded, packs are only listed, because their libraries would fail to load.
    """
    records = plugins.found() if musa_runtime.load().error else plugins.load_packs(strict=False)
    summaries = {
        record.name: (info or {}).get("summary", "") if error is None else f"musa_pack_info raised {error!r}"
        for record, info, error in plugins.hook_results("musa_pack_info")
    }
    return [
        {
            "name": record.name,
            "dist": record.dist,
            "version": record.version,
            "status": record.status,
            "seconds": round(record.seconds, 4),
            "providers": record.providers,
            "ops": record.ops,
            "summary": summaries.get(record.name, ""),
            "error": None if record.error is None else str(record.error),
        }
        for record in records
    ]


def render_packs(rows):
    if not rows:
        commands = installation.commands(*extras.installs().get("all", ("torch-musa",)))
        return "\n  ".join(
            [
                "no op packs are installed; torch's own CPU kernels serve every operator.\nTo add some:",
                *commands,
            ]
        )
    table = [("pack", "version", "status", "ops", "time", "summary")]
    table += [
        (
            row["name"],
            row["version"],
            row["status"],
            str(row["ops"]),
            f"{row['seconds'] * 1e3:.1f} ms",
            row["summary"],
        )
        for row in rows
    ]
    text = _columns(table)
    for row in rows:
        if row["error"]:
            text += f"\n\n{row['name']}: " + row["error"].replace("\n", "\n  ")
    return text


def ops(pattern=None, every=False):
    """Returns operators and their providers, and the number of operators that are left out.

    The operator of the pattern's name comes first, then those whose names begin with it, then the others.

    Args:
        pattern (str, optional): as in `torch.musa.ops.table`.
        every (bool): include private operators, and overloads with `out=`. They are included as well if the
            pattern names one, or if nothing else matches.

    Returns:
        tuple: a list of `{op, provider, candidates, calls, origin}`, and an int.
    """
    rows = [
        {key: row[key] for key in ("op", "provider", "candidates", "calls", "origin")}
        for row in registry.table(pattern)
    ]
    name = (pattern or "").rpartition("::")[2]
    rows.sort(key=lambda row: (*_distance(row["op"], name), row["op"]))
    public = [row for row in rows if not _is_internal(row["op"])]
    if every or not public or name.startswith("_") or "." in name:
        public = rows
    return public, len(rows) - len(public)


def _distance(op, wanted):
    """Returns a sort key: the operator `wanted` and its overloads, then those that begin so, then others; of
    each kind those of torch's namespace first."""
    namespace, _, name = op.partition("::")
    kind = 0 if name.partition(".")[0] == wanted else 1 if name.startswith(wanted) else 2
    return kind, namespace != "aten"


def _is_internal(op):
    name, _, overload = op.partition("::")[2].partition(".")
    return (
        op.startswith("_") or name.startswith("_") or f"_{name}".endswith("_out") or overload.endswith("out")
    )


def no_operator(pattern):
    """Returns the error message for a pattern that no operator matches, with the names most similar to it."""
    names = sorted({row["op"].partition(".")[0] for row in registry.table()})
    public = [name for name in names if not _is_internal(name)]
    wanted = registry.op_name(pattern).partition(".")[0] if "*" not in pattern else pattern
    return (
        f"no operator matches {pattern!r}.{near(wanted, public)}\n"
        "Fix: python -m torch_musa ops lists the operators"
    )


def render_ops(rows, hidden=0):
    table = [("operator", "served by", "candidates, in order", "calls", "order from")]
    table += [
        (row["op"], row["provider"], ", ".join(row["candidates"]), str(row["calls"]), row["origin"])
        for row in rows
    ]
    served = {}
    for row in rows:
        served[row["provider"]] = served.get(row["provider"], 0) + 1
    totals = ", ".join(f"{provider} {count}" for provider, count in sorted(served.items()))
    text = f"{_columns(table)}\n\n{len(rows)} operators: {totals}"
    if hidden:
        text += f"\n{hidden} private operators and overloads with out= are left out; --all lists them"
    if any(row["origin"] == "file" for row in rows):
        text += f"\nOrders from a file: {measured_orders.state().path}"
    return text


def environment(settings=True):
    """Returns versions and settings as a dict of str to str, in display order.

    Args:
        settings (bool): include environment variables.
    """
    result = musa_runtime.load()
    facts = {
        "python": f"{platform.python_version()} ({platform.machine()}), {platform.python_implementation()}",
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()) or "unknown",
        "processor": _processor(),
        "torch": f"{torch.__version__} (git {torch.version.git_version[:10]}, debug {torch.version.debug})",
        "threads": f"{torch.get_num_threads()} within an operator, {torch.get_num_interop_threads()} between",
    }
    for dist in extras.family():
        facts[dist] = extras.version(dist) or "not installed"
    facts.update({dist: version for dist in NEIGHBOURS if (version := extras.version(dist))})
    for compiler in COMPILERS:
        facts[compiler] = _first_line(compiler)
    sdk = result.sdk
    facts["MUSA SDK"] = (
        f"{sdk.home} (from {sdk.source}, version {sdk.version or 'unknown'})"
        if sdk and sdk.home
        else "not found"
    )
    facts["runtime"] = f"{result.status}, in {result.seconds * 1e3:.1f} ms"
    if result.error is not None:
        facts["runtime error"] = str(result.error)
    facts.update(_devices())
    for name in sorted(os.environ):
        if settings and name.startswith(SETTINGS):
            facts[f"${name}"] = os.environ[name]
    for row in packs():
        facts[f"pack {row['name']}"] = f"{row['version']} {row['status']}"
    for record, lines, error in plugins.hook_results("musa_env_report"):
        if isinstance(error, NoDeviceError):
            facts[f"{record.name}: musa_env_report"] = "not read without a device"
        elif error is not None:
            facts[f"{record.name}: musa_env_report"] = f"raised {error!r}"
        for key, value in (lines or {}).items():
            facts[f"{record.name}: {key}"] = str(value)
    return facts


def _processor():
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), model)
    except OSError:  # not Linux: use Python's value
        pass
    return f"{model}, {os.cpu_count()} logical"


def _first_line(program):
    """Returns a program's version line; extensions are compiled with the program found on PATH."""
    path = shutil.which(program)
    if path is None:
        return "not found"
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"cannot be run: {error}"
    return (done.stdout.splitlines() or ["no output"])[0]


def _devices():
    facts = {"devices": str(torch.musa.device_count())}
    if not torch.musa.is_available():
        return facts
    try:
        extension = musa_runtime.load().extension
        facts["driver, runtime"] = f"{extension.driver_version()}, {extension.runtime_version()}"
        for index in range(torch.musa.device_count()):
            device = torch.musa.get_device_properties(index)
            facts[f"device {index}"] = (
                f"{device.name}, mp_{device.major}{device.minor}, {device.total_memory / 2**30:.1f} GiB, "
                f"{device.multi_processor_count} multiprocessors, warp size {device.warp_size}, "
                f"{'unified' if device.is_integrated else 'discrete'} memory, PCI {device.pci_domain_id:04x}:"
                f"{device.pci_bus_id:02x}:{device.pci_device_id:02x}, reaches {_peers(index)}"
            )
        facts["allocator"] = torch.musa.get_allocator_backend()
    except RuntimeError as error:  # the report must also work on a broken machine
        facts["device error"] = str(error)
    return facts


def _peers(index):
    reached = [
        f"musa:{other}"
        for other in range(torch.musa.device_count())
        if other != index and torch.musa.can_device_access_peer(index, other)
    ]
    return ", ".join(reached) or "no other device"


def render_environment(facts):
    width = max(map(len, facts))
    indent = "\n" + " " * (width + 2)
    return "\n".join(f"{key:<{width}}  {value}".replace("\n", indent) for key, value in facts.items())


def _columns(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
