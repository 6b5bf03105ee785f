# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Results of long runs, in build/records, which CI keeps as an artefact.

`python -m tests.records` copies their summaries into docs/records.json once a release. No test compares a
record with the sources, so a change of the sources changes no record. `dev.py` imports this module before
anything is installed, so it uses the standard library only.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

from tests.harness.repository import ROOT, git

FOLDER = Path(os.environ.get("MUSA_TESTS_RECORDS") or ROOT / "build" / "records")


def tree() -> str:
    """The git tree of HEAD, with "+" if tracked files differ from it; "unknown" outside a clone."""
    found = git("rev-parse", "--short=12", "HEAD^{tree}")
    return "unknown" if found is None else found + ("+" if git("status", "--porcelain", "-uno") else "")


def write(name: str, command: str, summary: str, **details: Any) -> Path:
    """Writes build/records/NAME.json: date, tree, versions, command, the result in one line, and details."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        details.setdefault("torch", importlib.metadata.version("torch"))
    content = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "tree": tree(),
        "command": command,
        "summary": summary,
        "python": platform.python_version(),
        **details,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(name: str) -> dict[str, Any]:
    """The last record of this name, for runs that replace a part of it; empty if there is none."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
