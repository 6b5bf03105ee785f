# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tools that find the operator and the module at which a program's results go wrong.

Each is a context manager or a function; a program that imports none of them pays nothing. docs/debugging.md
shows them at work.
"""

from .call_file import CallFileError
from .comparison import Comparison, Difference, DifferenceError, compare
from .determinism import Determinism, Varying, check_determinism
from .dump import CallDump, dump
from .nonfinite import NonFinite, NonFiniteError, NonFiniteTracker, track_nonfinite
from .operator_log import OperatorLog, log_operators
from .replay import Outcome, replay
from .report_page import write_report
from .timeline import Row, Timeline

__all__ = [
    "CallDump",
    "CallFileError",
    "Comparison",
    "Determinism",
    "Difference",
    "DifferenceError",
    "NonFinite",
    "NonFiniteError",
    "NonFiniteTracker",
    "OperatorLog",
    "Outcome",
    "Row",
    "Timeline",
    "Varying",
    "check_determinism",
    "compare",
    "dump",
    "log_operators",
    "replay",
    "track_nonfinite",
    "write_report",
]
