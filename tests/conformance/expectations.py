# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The known failures: few, each with its cause, and strict in both directions.

A known failure that passes fails the run until its entry is removed, and so does a stale entry, which names
no test.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest itself depends on tomli there
    import tomli as tomllib

KNOWN_FAILURES_FILE = Path(__file__).with_name("known_failures.toml")
LIMIT = 10


@dataclass(frozen=True)
class KnownFailure:
    """One entry of known_failures.toml."""

    database: str
    name: str
    variant: str
    kind: str
    cause: str
    # The failing sample is outside the sampled run, where the test passes.
    full_only: bool = False
    # The test fails if `provider` serves `operator`, and passes otherwise.
    operator: str = ""
    provider: str = ""

    def applies(self, full: bool, provider_of: Callable[[str], str]) -> bool:
        """Whether the test fails in this run."""
        if self.full_only and not full:
            return False
        return not self.operator or provider_of(self.operator) == self.provider

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.database, self.name, self.variant, self.kind)


def parse(text: str) -> list[KnownFailure]:
    """Read the file's text; raise ValueError for an entry without a cause, an entry twice, or too many."""
    entries = [KnownFailure(**entry) for entry in tomllib.loads(text).get("failure", [])]
    for entry in entries:
        if len(entry.cause.split()) < 3:
            raise ValueError(
                f"{entry.key}: the cause must say what is wrong and why it is not fixed, not {entry.cause!r}"
            )
        if bool(entry.operator) != bool(entry.provider):
            raise ValueError(f"{entry.key}: operator and provider are named together or not at all")
    keys = [entry.key for entry in entries]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise ValueError(f"listed twice: {repeated}")
    if len(entries) > LIMIT:
        raise ValueError(f"{len(entries)} known failures are listed; at most {LIMIT} are allowed")
    return entries


def load() -> list[KnownFailure]:
    return parse(KNOWN_FAILURES_FILE.read_text(encoding="utf-8"))


def stale(entries: list[KnownFailure], existing: set[tuple[str, str, str, str]]) -> list[KnownFailure]:
    """The entries that name no existing test."""
    return [entry for entry in entries if entry.key not in existing]
