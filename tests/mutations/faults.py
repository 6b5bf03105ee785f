# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The seeded faults of mutations.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from tests.harness import tier

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("mutations.toml")
CONTROL = "control"


class Fault(NamedTuple):
    """A replacement of text in one file; see mutations.toml."""

    id: str
    file: str
    before: str
    after: str
    effect: str
    first: str = ""  # tests that the tier takes whole, run before it

    @property
    def package(self) -> str:
        return Path(self.file).parts[1]


def load() -> list[Fault]:
    """Returns the faults; the first one is the control."""
    return [Fault(name, **fields) for name, fields in tomllib.loads(TABLE.read_text()).items()]


def _in_the_tier(fault: Fault, root: Path) -> bool:
    """Whether the tier has the tests of `first` at every turn if the fault's file is all that changed."""
    file = root / fault.first.split("::")[0]
    share, suite = tier.plan([fault.file], turn=0), file.relative_to(root / "tests").parts[0]
    return file.is_file() and suite in share.changed and share.parts[suite] == 1


def problems(faults: list[Fault], root: Path) -> list[str]:
    """Returns a line for each fault that does not apply to the tree."""
    found = []
    for fault in faults:
        path = root / fault.file
        count = path.read_text().count(fault.before) if path.is_file() else 0
        if count != 1:
            found.append(f"{fault.id}: `before` occurs {count} times in {fault.file}, not once")
        elif fault.before == fault.after:
            found.append(f"{fault.id}: `before` and `after` are equal")
        elif fault.first and not _in_the_tier(fault, root):
            found.append(f"{fault.id}: the tier does not take {fault.first} whenever {fault.file} changes")
    return found
