# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Preserves times of installed files. pip rewrites every file of a package; if the content is unchanged,
files compiled from it are still up to date."""

import csv
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import underscored


def installed_files(site: Path, package: str) -> list[Path]:
    """Returns the files of an installed distribution without its metadata; empty if not installed."""
    for record in site.glob(f"{underscored(package)}-*.dist-info/RECORD"):
        with record.open(newline="") as lines:
            paths = [site / row[0] for row in csv.reader(lines)]
        return [path for path in paths if path.parent != record.parent and path.is_file()]
    return []


def states(files: list[Path]) -> dict[Path, tuple[int, bytes]]:
    """Returns modification times in nanoseconds, and content digests."""
    return {path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).digest()) for path in files}


@contextmanager
def kept(site: Path, package: str) -> Iterator[None]:
    """Restores the times of the distribution's files that are replaced by equal ones."""
    before = states(installed_files(site, package))
    yield
    for path, (now, digest) in states(installed_files(site, package)).items():
        then, old_digest = before.get(path, (now, b""))
        if then != now and digest == old_digest:
            os.utime(path, ns=(then, then))
