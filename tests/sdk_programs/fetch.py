# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fetches the sources of the programs at their commits, with git."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from .programs import Source

HOST = "https://github.com"


def _git(*arguments: str, folder: Path) -> None:
    """Run git, and raise with its message if it fails."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)} failed in {folder}: {done.stderr.strip()}")


def fetch(sources: Iterable[Source], root: Path, host: str = HOST) -> list[str]:
    """Fetch sources into `root`, one folder each, and return a line per source that could not be had.

    Only the commit of the table is fetched, without history. A folder that exists is left as it is.
    `host` is the prefix of repository addresses: a server, or a folder of bare clones.
    """
    root.mkdir(parents=True, exist_ok=True)
    failures = []
    for source in sources:
        folder = source.folder(root)
        if folder.is_dir():
            continue
        part = folder.with_name(folder.name + ".part")
        part.mkdir(exist_ok=True)
        try:
            _git("init", "--quiet", folder=part)
            _git("fetch", "--quiet", "--depth=1", f"{host}/{source.repository}", source.commit, folder=part)
            _git("checkout", "--quiet", "FETCH_HEAD", folder=part)
        except RuntimeError as error:
            failures.append(f"{source.name}: {error}")
        else:
            part.rename(folder)
    return failures
