# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Facts of the machine and of the installation that need neither a device nor the SDK's libraries."""

from __future__ import annotations

import glob
import json
import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

import musa_runtime
from musa_runtime import sdk
from torch_musa import extras, listings

_MODULE = "mtgpu"  # the driver's kernel module
_DEVICE_FILES = ("/dev/mtgpu*", "/dev/dri/render*")
# Rows of the tables in docs/guide/environment.md: one name or several.
_ROW = re.compile(r"^\| (`[A-Z][A-Z0-9_]+`(?:, `[A-Z][A-Z0-9_]+`)*) \|", re.MULTILINE)


def installation() -> list[str]:
    """Returns the versions of Python, torch and this project's packages, with their origins."""
    import torch

    lines = [
        f"python {platform.python_version()} ({platform.machine()}), {sys.executable}",
        f"virtual environment: {sys.prefix if sys.prefix != sys.base_prefix else 'none'}",
        f"torch {torch.__version__} (git {torch.version.git_version}), {os.path.dirname(torch.__file__)}",
        f"system: {platform.platform()}, libc {' '.join(platform.libc_ver()) or 'unknown'}",
    ]
    for name in (*extras.family(), *listings.NEIGHBOURS):
        version = extras.version(name)
        if version is not None or name in extras.family():
            lines.append(f"{name} {version or 'is not installed'}{_origin(name)}")
    return lines


def _origin(name: str) -> str:
    """Returns where pip installed a distribution from, according to its record."""
    try:
        record = json.loads(metadata.distribution(name).read_text("direct_url.json") or "{}")
        return f", from {record['url']}"
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return ""


def musa_sdk() -> list[str]:
    """Returns the result of the search for the SDK, and the SDK's libraries."""
    found = sdk.resolve()
    result = musa_runtime.load()
    lines = [f"{place}: {finding}" for place, finding in found.attempts]
    lines.append(f"in use: {found.home or 'none'}, version {found.version or 'unknown'}")
    lines.append(f"libmusa_runtime: {result.status}, ABI {musa_runtime.ABI}")
    if found.home is not None:
        names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(found.home, "lib", "*.so*")))
        lines.append(f"libraries: {' '.join(names) or 'none'}")
    return lines


def driver_and_container() -> list[str]:
    """Returns the state of the kernel driver, the device files and the limits of a container."""
    version = _text(f"/sys/module/{_MODULE}/version").strip()
    loaded = re.search(rf"^{_MODULE} ", _text("/proc/modules"), re.MULTILINE)
    files = [path for pattern in _DEVICE_FILES for path in sorted(glob.glob(pattern))]
    denied = [path for path in files if not os.access(path, os.R_OK | os.W_OK)]
    lines = [
        f"kernel module {_MODULE}: {'loaded' if loaded else 'not loaded'}, version {version or 'unknown'}",
        f"device files: {' '.join(files) or 'none'}",
        f"device files without access: {' '.join(denied) or 'none'}",
        f"container: {', '.join(_container()) or 'no sign of one'}",
        f"processors: {len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        f"memory limit: {_text('/sys/fs/cgroup/memory.max').strip() or 'unknown'}",
    ]
    if os.path.isdir("/dev/shm"):
        shared = os.statvfs("/dev/shm")
        lines.append(f"shared memory: {shared.f_frsize * shared.f_blocks / 2**20:.0f} MiB")
    return lines


def _container() -> list[str]:
    signs = [name for name in ("/.dockerenv", "/run/.containerenv") if os.path.exists(name)]
    groups = _text("/proc/1/cgroup")
    signs += [
        f"{name} in /proc/1/cgroup" for name in ("docker", "kubepods", "containerd", "lxc") if name in groups
    ]
    if re.search(r"^overlay / overlay", _text("/proc/mounts"), re.MULTILINE):
        signs.append("an overlay as the root file system")
    if "microsoft" in platform.release().lower():
        signs.append("WSL")
    return signs


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # not on this system
        return ""


def documented_variables() -> list[str]:
    """Returns the names of the environment variables in docs/guide/environment.md."""
    page = Path(__file__).with_name("environment.md").read_text(encoding="utf-8")
    return [name for row in _ROW.findall(page) for name in re.findall(r"\w+", row)]


def environment_variables() -> list[str]:
    """Returns the documented variables that are set. Other variables are never part of a report."""
    names = [name for name in documented_variables() if name in os.environ]
    return [f"{name}={os.environ[name]}" for name in sorted(names)] or ["none of the documented ones is set"]
