# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The script that draws the diagrams of the manual, as a local file: docs/design/manual.md.

npm fetches one archive, whose digest is compared. Nothing of it is executed here; browsers run the script.
"""

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

from . import WorkspaceError

PACKAGE = "mermaid@12.3.0"
SHA256 = "be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040"
SCRIPT = "mermaid.min.js"
LIMIT = 120  # seconds


def fetch(folder: Path) -> str | None:
    """Writes the script into `folder`, unless it is there. Returns why it could not be fetched, or None.

    Raises:
        WorkspaceError: if the archive is not the pinned one.
    """
    target = folder / SCRIPT
    if target.exists():
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=folder)
    except subprocess.TimeoutExpired:
        return f"npm took more than {LIMIT} s"
    archives = list(folder.glob("*.tgz"))
    if done.returncode or not archives:
        return f"npm ended with {done.returncode}"
    extract(archives[0], target, SHA256)
    archives[0].unlink()
    return None


def extract(archive: Path, target: Path, digest: str) -> None:
    """Copies the script out of the archive.

    Raises:
        WorkspaceError: if the archive has another digest.
    """
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != digest:
        raise WorkspaceError(
            f"{archive.name} is not the pinned archive of {PACKAGE}.\n  have: {found}\n  need: {digest}\n"
            f"Fix: remove {archive} and run the command again, with another source of npm if it fails again"
        )
    with tarfile.open(archive) as files:
        content = files.extractfile(f"package/dist/{SCRIPT}")
        assert content is not None
        target.write_bytes(content.read())
