# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The records of complete runs, kept in the repository: last_full_run.json for the default settings, and for
others names such as last_full_run.mudnn_host_copy_strict_async.json.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections import Counter, defaultdict
from pathlib import Path

import torch

from tests.harness.device import DEVICE, EXECUTION_MODE, MEMORY_MODE

LAST_FULL_RUN = Path(__file__).with_name("last_full_run.json")
LAST_DTYPE_RUN = Path(__file__).with_name("last_dtype_run.json")
_DEFAULTS = {
    "operators": "default",
    "memory": "shared",
    "execution": "inline",
    "architecture": "mp_31",
    "schedule": "forward",
}


def settings() -> dict[str, str]:
    """Order of providers, memory and execution modes, and the emulator's architecture and thread schedule."""
    chosen = {
        "operators": os.environ.get("TORCH_MUSA_OPS"),
        "memory": MEMORY_MODE,
        "execution": EXECUTION_MODE,
        "architecture": os.environ.get("MUSA_EMULATOR_ARCH"),
        "schedule": os.environ.get("MUSA_EMULATOR_SCHEDULE"),
    }
    return {name: chosen[name] or default for name, default in _DEFAULTS.items()}


def record_file(settings: dict[str, str], base: Path = LAST_FULL_RUN) -> Path:
    """The file in which a complete run under `settings` is recorded."""
    special = [
        re.sub(r"\W+", "_", value).strip("_") for name, value in settings.items() if value != _DEFAULTS[name]
    ]
    return base.with_suffix(f".{'_'.join(special)}.json") if special else base


def records() -> list[Path]:
    return sorted(LAST_FULL_RUN.parent.glob("last_full_run*.json"))


def provider_of(operator: str) -> str:
    """The provider that serves an operator of the device under test."""
    return torch.musa.ops.explain(operator)["provider"] if DEVICE == "musa" else "cpu"


def calls_by_provider() -> dict[str, int]:
    """How many calls of operators each provider has served in this process."""
    ops = torch.musa.ops
    served = Counter()
    for row in ops.table():
        served.update({each["provider"]: each["calls"] for each in ops.explain(row["op"])["candidates"]})
    return {provider: calls for provider, calls in sorted(served.items()) if calls}


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

    def of(self, databases: set[str]) -> Tally:
        """The part of the tally for these databases."""
        part = Tally()
        for database in databases & set(self._counts):
            part._counts[database] = self._counts[database]
        return part

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
        self,
        known_failures: list[tuple[str, ...]],
        settings: dict[str, str],
        calls: dict[str, int],
        path: Path | None = None,
    ) -> None:
        """Write the record of a run under `settings`. `calls` has the number of calls that each provider
        served.
        """
        record = {
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "torch": torch.__version__,
            "settings": settings,
            "calls": calls,
            "known_failures": [list(entry) for entry in known_failures],
            "results": {
                database: {
                    variant: {kind: dict(sorted(counts.items())) for kind, counts in sorted(kinds.items())}
                    for variant, kinds in sorted(variants.items())
                }
                for database, variants in sorted(self._counts.items())
            },
        }
        (path or record_file(settings)).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
