# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The callback ids of MUPTI and those of CUPTI: a table from the enumerations in the headers of both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from . import declarations

# The domains, with the prefixes of the functions of the SDK and of CUDA.
DOMAINS = {"RUNTIME": ("musa", "cuda"), "DRIVER": ("mu", "cu")}
# Calls of the SDK that CUPTI has no number of, with the reason.
NO_NUMBER: dict[str, str] = {}
# Calls of CUDA alone that put work on a device. Their records are kept, with the id INVALID, because records
# of the work refer to them. Records of CUDA's other calls are left out.
ENQUEUES = re.compile(r"cu(?:da)?(?:Launch|Memcpy|Memset|MemPrefetch|GraphLaunch)\w*")
_VERSION = re.compile(r"_v\d{4,}")  # of the runtime's functions: cudaMalloc_v3020
_THREAD_STREAM = re.compile(r"_pt[sd][sz]")
_REVISION = re.compile(r"_v\d$")  # cuMemAlloc_v2
_NOT_CALLS = ("INVALID", "SIZE", "FORCE_INT")


@dataclass(frozen=True)
class Row:
    """A number of CUPTI; `call` is the function of the SDK, None for one of CUDA alone that is kept."""

    domain: str
    number: str
    call: str | None


def numbered(header: Path, interface: str, domain: str) -> list[str]:
    """The names that a header gives a number, as mupti_runtime_cbid.h does."""
    prefix = f"{interface}_{domain}_TRACE_CBID_"
    names = [name.removeprefix(prefix) for name in declarations.enumerators(header, prefix)]
    return [name for name in names if name not in _NOT_CALLS]


def call_of(name: str, known: set[str], prefixes: tuple[str, str]) -> str | None:
    """The function of the SDK that a name of CUPTI, such as cudaMemcpyAsync_ptsz_v7000, is the equal of."""
    ours, cudas = prefixes
    plain = _THREAD_STREAM.sub("", _VERSION.sub("", name))
    for candidate in (plain, _REVISION.sub("", plain)):
        found = ours + candidate.removeprefix(cudas)
        if found in known:
            return found
    return None


def table(headers: Path, cupti: Path) -> list[Row]:
    """The rows of all numbers of CUPTI whose records are kept.

    headers: the folder of mupti_runtime_cbid.h; cupti: that of cupti_runtime_cbid.h.

    Raises:
        ValueError: a call of the SDK has no number of CUPTI, and no reason in NO_NUMBER; or the reverse.
    """
    rows, problems = [], []
    for domain, prefixes in DOMAINS.items():
        known = set(numbered(headers / f"mupti_{domain.lower()}_cbid.h", "MUPTI", domain))
        missing = set(known)
        for name in numbered(cupti / f"cupti_{domain.lower()}_cbid.h", "CUPTI", domain):
            call = call_of(name, known, prefixes)
            missing.discard(call or "")
            if call is not None or ENQUEUES.fullmatch(name):
                rows.append(Row(domain, name, call))
        problems += [f"{name}: CUPTI has no number of its equal" for name in sorted(missing - set(NO_NUMBER))]
    found = {row.call for row in rows}
    problems += [
        f"{name}: has a reason for no number, and has one" for name in sorted(found & set(NO_NUMBER))
    ]
    if problems:
        raise ValueError(
            "callback ids of MUPTI without an equal in CUPTI, or the reverse:\n  "
            + "\n  ".join(problems)
            + "\nFix: give the reason in NO_NUMBER of codegen/callbacks.py, or extend call_of"
        )
    return rows


def render(rows: list[Row]) -> str:
    """Lines MUPTI_CUDA_CALL(domain, CUPTI's name, the SDK's) and MUPTI_CUDA_OTHER(domain, CUPTI's name)."""
    lines = ["// Written by codegen from the headers of MUPTI and CUPTI. Do not edit."]
    for row in rows:
        if row.call is not None:
            lines.append(f"MUPTI_CUDA_CALL({row.domain}, {row.number}, {row.call})")
        else:
            lines.append(f"MUPTI_CUDA_OTHER({row.domain}, {row.number})")
    return "\n".join(lines) + "\n"


def report(rows: list[Row]) -> dict[str, list[str] | dict[str, str]]:
    """For mapping.json: the calls with an equal, those without, and CUDA's own that are kept."""
    return {
        "mapped": sorted({row.call for row in rows if row.call is not None}),
        "no equal": NO_NUMBER,
        "of CUDA alone": [row.number for row in rows if row.call is None],
    }
