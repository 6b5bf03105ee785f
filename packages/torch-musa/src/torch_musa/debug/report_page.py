# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The HTML report: a single file that works offline."""

from __future__ import annotations

import html
import json
import math
import platform
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from .operator_log import totals
from .timeline import Timeline

if TYPE_CHECKING:
    import os

    from .comparison import Comparison
    from .nonfinite import NonFiniteTracker
    from .operator_log import OperatorLog

# If several tools saw the same call, the first of these verdicts is shown.
_VERDICTS = ("different", "nonfinite", "rounding", "not compared", "same", "host", "")


def write_report(
    path: str | os.PathLike[str],
    *tools: Comparison | NonFiniteTracker | OperatorLog,
    title: str = "Operators",
) -> None:
    """Writes a report of tools that were entered together.

    Args:
        path (path): the output file; its folder must exist.
        tools: `Comparison`, `NonFiniteTracker` and `OperatorLog` objects whose blocks have ended.
        title (str): heading of the page.

    Raises:
        TypeError: for a tool without a timeline.
        OSError: if the file cannot be written.
    """
    for tool in tools:
        if not isinstance(getattr(tool, "timeline", None), Timeline):
            raise TypeError(
                f"a report shows tools with a timeline, but got {type(tool).__name__}.\n"
                "Fix: write_report(path, comparison, tracker, log)"
            )
    rows = merge(tool.timeline for tool in tools)
    template = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(title),
        "summary": _summary(rows, tools),
        "findings": "".join(_findings(tool) for tool in tools),
        "operators": _operators(rows),
        "left_out": _left_out(tools),
        "data": _data(rows),
    }
    for name, text in parts.items():
        template = template.replace(f"<!--{name}-->", text)
    Path(path).write_text(template, encoding="utf-8")


def merge(timelines):
    """Merges the timelines of one block into one row per call, ordered by start time."""
    rows = {}
    for timeline in timelines:
        for row in timeline.rows:
            known = rows.get(row.call)
            rows[row.call] = row if known is None else _merged(known, row)
    return sorted(rows.values(), key=lambda row: row.start)


def _merged(one, other):
    first, second = sorted((one, other), key=lambda row: _VERDICTS.index(row.verdict))
    notes = [row.note for row in (first, second) if row.note]
    copied = tuple(map(max, one.copied, other.copied))
    error = second.error if math.isnan(first.error) else first.error
    return first._replace(note="; ".join(notes), copied=copied, error=error)


def _summary(rows, tools):
    verdicts = Counter(row.verdict for row in rows)
    facts = {
        "operators": len(rows),
        "different from the CPU": verdicts["different"],
        "the same but for rounding": verdicts["rounding"],
        "the same": verdicts["same"],
        "not compared": verdicts["not compared"],
        "with NaN or infinities": verdicts["nonfinite"],
        "time in operators": f"{sum(row.seconds for row in rows) * 1e3:.1f} ms",
        "torch": str(torch.__version__),
        "device": torch.musa.get_device_name() if torch.musa.is_available() else "none",
        "python": platform.python_version(),
    }
    if torch.musa.is_available() and torch.backends.musa.matmul.allow_tf32:
        facts["TF32"] = "allowed for matrix products, whose errors are then up to 1e-3"
    dropped = sum(tool.timeline.dropped for tool in tools)
    if dropped:
        facts["operators after the last row"] = dropped
    return _table(None, [[html.escape(key), html.escape(str(value))] for key, value in facts.items()])


def _findings(tool):
    """Returns the findings of a tool as text blocks."""
    found = getattr(tool, "differences", None)
    heading, none = "Differences from the CPU", "No operator differs."
    if found is None:
        found = getattr(tool, "findings", None)
        heading, none = "Where NaN and infinities begin", "No operator made a NaN or an infinity."
    if found is None:
        return ""
    blocks = "".join(f"<pre>{html.escape(str(each))}</pre>" for each in found[:100])
    more = f"<p>{len(found) - 100} more are in the timeline.</p>" if len(found) > 100 else ""
    return f"<h2>{heading}</h2>{blocks or f'<p>{none}</p>'}{more}"


def _left_out(tools):
    counts = Counter()
    for tool in tools:
        counts.update(getattr(tool, "not_compared", {}))
    if not counts:
        return "<p>Every operator was compared.</p>"
    rows = [
        [html.escape(op), html.escape(reason), str(count)]
        for (op, reason), count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    return _table(["operator", "reason", "calls"], rows)


def _operators(rows):
    errors, worst = {}, {}
    for row in rows:
        key = row.operator, row.provider
        if not math.isnan(row.error):
            errors[key] = max(errors.get(key, 0.0), row.error)
        worst[key] = min(worst.get(key, len(_VERDICTS)), _VERDICTS.index(row.verdict))
    cells = []
    for total in totals(rows):
        key = total.operator, total.provider
        verdict = _VERDICTS[worst[key]]
        cells.append(
            [
                html.escape(total.operator),
                html.escape(total.provider),
                str(total.calls),
                f"{total.seconds * 1e3:.3f}",
                f"{total.to_device:,}" if total.to_device else "",
                f"{total.to_host:,}" if total.to_host else "",
                f"{errors[key]:.3g}" if key in errors else "",
                f'<span class="v {verdict.replace(" ", "-")}">{verdict}</span>',
            ]
        )
    head = [
        "operator",
        "provider",
        "calls",
        "ms",
        "bytes to device",
        "bytes to host",
        "largest error",
        "worst verdict",
    ]
    return _table(head, cells)


def _table(head, rows):
    top = "" if head is None else f"<tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>"
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{top}{body}</table>"


def _data(rows):
    """Returns the rows for the timeline's script; repeated strings are stored once."""
    places = {}

    def index(text):
        return places.setdefault(text, len(places))

    threads = {}
    packed = [
        [
            row.call,
            index(row.operator),
            index(row.module),
            index(row.phase),
            threads.setdefault(row.thread, len(threads)),
            round(row.start * 1e6, 1),
            round(row.seconds * 1e6, 1),
            index(row.provider),
            index("\n".join(row.arguments)),
            index(row.verdict),
            index(row.note),
        ]
        for row in rows
    ]
    text = json.dumps(
        {"strings": list(places), "rows": packed, "threads": len(threads)}, separators=(",", ":")
    )
    return text.replace("<", "\\u003c")  # so that text of the program cannot end the script element
