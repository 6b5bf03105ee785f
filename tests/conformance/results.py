# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The record of a complete run: last_full_run.json, kept in the repository."""

from __future__ import annotations

import datetime
import json
from collections import Counter, defaultdict
from pathlib import Path

import torch

from .expectations import KnownFailure

LAST_FULL_RUN = Path(__file__).with_name("last_full_run.json")


class Tally:
    """Outcomes and sample counts of the conformance tests of one session."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, dict[str, Counter]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(Counter))
        )

    def add(self, database: str, variant: str, kind: str, outcome: str, samples: int) -> None:
        counts = self._counts[database][variant][kind]
        counts[outcome] += 1
        counts["samples"] += samples

    def tests(self) -> int:
        return sum(count for outcome, count in self._outcomes() if outcome != "samples")

    def failures(self) -> int:
        return sum(count for outcome, count in self._outcomes() if outcome == "failed")

    def _outcomes(self) -> list[tuple[str, int]]:
        return [
            item
            for variants in self._counts.values()
            for kinds in variants.values()
            for counts in kinds.values()
            for item in counts.items()
        ]

    def write(
        self, known_failures: list[KnownFailure], settings: dict[str, str], path: Path = LAST_FULL_RUN
    ) -> None:
        """Write the record; `settings` says under which environment the run was made."""
        record = {
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "torch": torch.__version__,
            "settings": settings,
            "known_failures": [list(entry.key) + [entry.cause] for entry in known_failures],
            "results": {
                database: {
                    variant: {kind: dict(sorted(counts.items())) for kind, counts in sorted(kinds.items())}
                    for variant, kinds in sorted(variants.items())
                }
                for database, variants in sorted(self._counts.items())
            },
        }
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
