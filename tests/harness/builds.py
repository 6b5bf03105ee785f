# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What tests compile, built once for all processes and runs, in build/, until an input changes."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "build" / "shared"


def digest(inputs: Iterable[Path], *settings: str) -> str:
    """A digest of the contents of files, of all files of folders, and of settings such as options."""
    result = hashlib.sha256("\0".join(settings).encode())
    for given in inputs:
        files = sorted(path for path in given.rglob("*") if path.is_file()) if given.is_dir() else [given]
        for path in files:
            result.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return result.hexdigest()


@cache
def sdk_digest() -> str:
    """A digest of the SDK's compiler, headers and libraries."""
    import musa_emulator

    home = musa_emulator.home()
    return digest([home / "bin", home / "include", home / "lib"])


def shared(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """The file or folder build/shared/<name>. `build(path)` makes it unless it was made with the same key;
    other processes wait meanwhile, and a build that raises leaves no key."""
    path = SHARED / name
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.key")
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists() or not made.is_file() or made.read_text() != key:
            made.unlink(missing_ok=True)
            build(path)
            made.write_text(key)
    return path
