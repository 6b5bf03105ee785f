# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Long tests whose result depends on some files alone: a recorded pass stands until one of the files changes.

``@pytest.mark.recorded("packages/musa-emulator/csrc", ...)`` names the files and folders. The test is skipped
while the digest of their contents equals the recorded one, and runs otherwise. With --full it always runs,
and a pass is recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(os.environ.get("MUSA_TESTS_RECORDS") or ROOT / "tests" / "data" / "recorded_passes.json")
# The versions of torch and of the build tools decide as well.
ALWAYS = ("requirements-dev.txt", "tests/harness/sanitized.cmake")
_GENERATED = {"build", "__pycache__"}


def _files(root: Path, name: str) -> list[Path]:
    path = root / name
    if path.is_file():
        return [path]
    found = (file for file in path.rglob("*") if file.is_file())
    files = sorted(file for file in found if not _GENERATED.intersection(file.relative_to(path).parts))
    if not files:
        raise FileNotFoundError(f"a recorded test names {name}, which holds no file under {root}")
    return files


def digest(names: Iterable[str], root: Path = ROOT) -> str:
    """A digest of the names and contents of the files.

    Raises:
        FileNotFoundError: if a name is neither a file nor a folder with files.
    """
    result = hashlib.sha256()
    for name in sorted({*names, *ALWAYS}):
        for file in _files(root, name):
            content = file.read_bytes()
            result.update(f"{file.relative_to(root)}:{len(content)}:".encode() + content)
    return result.hexdigest()


def read(path: Path = RECORDS) -> dict[str, str]:
    """The digest under which each recorded test passed last, by the test's id."""
    return json.loads(path.read_text()) if path.is_file() else {}


def write(passed: Mapping[str, str], failed: Iterable[str], path: Path = RECORDS) -> None:
    """Add what passed, and remove what failed, in the records."""
    records = {**read(path), **passed}
    for name in failed:
        records.pop(name, None)
    path.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
