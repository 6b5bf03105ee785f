# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m tests.soak --minutes 30 [--seed N]`: exit status 1 on any violation; the report goes to
build/records/soak.json."""

import argparse
import os
import sys

from tests.harness import records

# Set before torch is imported below, because the SDK and OpenMP read it when torch loads them.
os.environ.setdefault("MUSA_EMULATOR_DEVICES", "2")
os.environ.setdefault("MUSA_EMULATOR_MEMORY_LIMIT", "1G")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def main(argv: list[str] | None = None) -> int:
    from tests.soak.soak import Soak
    from tests.soak.workloads import WORKLOADS

    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first-round", type=int, default=0, help="number of the first round, to repeat it")
    parser.add_argument("--rounds", type=int, help="end after this many rounds")
    parser.add_argument("--without", default="", help="workloads to leave out, separated by commas")
    arguments = parser.parse_args(argv)
    left_out = set(filter(None, arguments.without.split(",")))
    if unknown := left_out - set(WORKLOADS):
        parser.error(f"no such workload: {', '.join(sorted(unknown))}; there are: {', '.join(WORKLOADS)}")

    chosen = {name: work for name, work in WORKLOADS.items() if name not in left_out}
    soak = Soak(chosen, seed=arguments.seed, first_round=arguments.first_round, narrate=print)
    report = soak.run(seconds=60 * arguments.minutes, rounds=arguments.rounds)
    found = report.as_dict()
    result = f"{report.rounds:,} rounds in {found['minutes']:g} minutes, {len(report.violations)} violations"
    path = records.write("soak", f"python -m tests.soak --minutes {arguments.minutes:g}", result, **found)
    print(report.text())
    print(f"report: {path}")
    return int(bool(report.violations))


if __name__ == "__main__":
    sys.exit(main())
