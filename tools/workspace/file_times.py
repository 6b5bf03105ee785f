# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Times of installed files. pip writes every file of a package anew; where the content is the same, what was
compiled from it is still up to date."""

import csv
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import underscored


def installed_files(site: Path, package: str) -> list[Path]:
    """The files of an installed distribution, without its metadata; empty if it is not installed."""
    for record in site.glob(f"{underscored(package)}-*.dist-info/RECORD"):
        with record.open(newline="") as lines:
            paths = [site / row[0] for row in csv.reader(lines)]
        return [path for path in paths if path.parent != record.parent and path.is_file()]
    return []


def states(files: list[Path]) -> dict[Path, tuple[int, bytes]]:
    """The time of change in nanoseconds, and a digest of the content."""
    return {path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).digest()) for path in files}


@contextmanager
def kept(site: Path, package: str) -> Iterator[None]:
    """Files of the distribution that are replaced by equal ones get back the times that they had."""
    before = states(installed_files(site, package))
    yield
    for path, (now, digest) in states(installed_files(site, package)).items():
        then, old_digest = before.get(path, (now, b""))
        if then != now and digest == old_digest:
            os.utime(path, ns=(then, then))
