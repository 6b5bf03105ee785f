# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies the summaries of records into docs/records.json: `python -m tests.records [FOLDER ...]`.

It runs once a release. FOLDER is build/records by default, or an unpacked artefact of CI. Rows of other runs
are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.harness import records

PAGE = records.ROOT / "docs" / "records.json"
COLUMNS = ("date", "tree", "command", "summary")


def collect(folders: Iterable[Path], page: Path = PAGE) -> list[str]:
    """Replaces the rows of the records in the folders; returns their names.

    Raises:
        ValueError: if a file lacks one of COLUMNS.
    """
    rows = json.loads(page.read_text(encoding="utf-8")) if page.is_file() else {}
    names = []
    for path in sorted(path for folder in folders for path in folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if missing := [column for column in COLUMNS if not record.get(column)]:
            raise ValueError(f"{path} is no record: it has no {missing[0]}")
        rows[path.stem] = {column: record[column] for column in COLUMNS}
        names.append(path.stem)
    page.write_text(
        json.dumps(dict(sorted(rows.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return names


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.records", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[records.FOLDER], metavar="FOLDER")
    names = collect(parser.parse_args(arguments).folders)
    print(f"{len(names)} rows of {PAGE.relative_to(records.ROOT)} are new: {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
