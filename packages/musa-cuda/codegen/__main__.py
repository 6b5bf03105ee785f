# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""python -m codegen --headers DIR... --cuda DIR [--nccl DIR] [--cupti DIR] [--cufft DIR] --out DIR"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import callbacks, declarations, device_headers, libraries
from .libraries import Library

SOURCES = Path(__file__).resolve().parents[1] / "csrc"
MUPTI = ("mupti_activity.h", "mupti_callbacks.h", "mupti_result.h", "mupti_version.h")


def find(headers: list[Path], name: str) -> Path:
    """A header in the first of the folders that has it."""
    found = [folder / name for folder in headers if (folder / name).is_file()]
    if not found:
        raise ValueError(f"none of {', '.join(map(str, headers))} has {name}")
    return found[0]


def described(
    headers: list[Path],
    cuda: Path,
    nccl: Path | None,
    cupti: Path | None = None,
    cufft: Path | None = None,
) -> list[Library]:
    """The libraries that can be made with this CUDA toolkit, and with NCCL, CUPTI and cuFFT where they are
    given."""
    include = cuda / "include"
    runtime = declarations.names(include / "cuda_runtime_api.h", r"\b(cuda[A-Z]\w+)\s*\(")
    runtime |= declarations.names(include / "cuda_profiler_api.h", r"\b(cuda[A-Z]\w+)\s*\(")
    driver = declarations.names(include / "cuda.h", r"CUDAAPI\s+(cu[A-Z]\w+)\s*\(")
    driver |= declarations.names(include / "cuda.h", r"#define\s+(cu[A-Z]\w+)\s")
    runtime_headers = [find(headers, name) for name in ("musa_runtime_api.h", "musa_profiler_api.h")]
    found = [
        Library(
            "musa",
            "mu",
            [find(headers, "musa.h")],
            "MUresult",
            driver,
            "MUSA_CUDA_DRIVER({})",
            "MUSA_ERROR_NOT_SUPPORTED",
        ),
        Library("musart", "musa", runtime_headers, "musaError_t", runtime, "{}", "musaErrorNotSupported"),
    ]
    if nccl is not None:
        known = declarations.names(nccl / "include" / "nccl.h", r"\b(nccl[A-Z]\w+)\s*\(")
        mccl = [find(headers, "mccl.h")]
        found.append(Library("mccl", "mccl", mccl, "mcclResult_t", known, "{}", "mcclInvalidUsage"))
    if cupti is not None:
        known = set()
        for name in ("activity", "callbacks", "result", "version"):
            known |= declarations.names(cupti / f"cupti_{name}.h", r"CUPTIAPI\s+(cupti[A-Z]\w+)\s*\(")
        mupti = [find(headers, name) for name in MUPTI]
        found.append(
            Library("mupti", "mupti", mupti, "MUptiResult", known, "{}", "MUPTI_ERROR_NOT_COMPATIBLE")
        )
    if cufft is not None:
        known = set()
        for name in ("cufft.h", "cufftXt.h"):
            known |= declarations.names(cufft / name, r"CUFFTAPI\s+(cufft[A-Z]\w+)\s*\(")
        mufft = [find(headers, "mufft.h")]
        found.append(Library("mufft", "mufft", mufft, "mufftResult_t", known, "{}", "MUFFT_NOT_SUPPORTED"))
    for library in found:
        library.by_hand = libraries.written_by_hand(SOURCES / library.name, library.prefix)
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headers", type=Path, action="append", required=True)
    parser.add_argument("--cuda", type=Path, required=True)
    parser.add_argument("--nccl", type=Path)
    parser.add_argument("--cupti", type=Path, help="folder of cupti.h")
    parser.add_argument("--cufft", type=Path, help="folder of cufft.h")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    device = options.out / "device"
    device.mkdir(parents=True, exist_ok=True)
    try:
        made = described(options.headers, options.cuda, options.nccl, options.cupti, options.cufft)
        report = libraries.coverage(made)
        header, source = find(options.headers, "musa_emulator.h"), SOURCES / "musart" / "testing.cpp"
        report["testing"] = libraries.testing_coverage(header, source)
        for library in made:
            (options.out / f"{library.name}_forwarders.inc").write_text(libraries.render(library))
        others = [find(options.headers, "mccl.h")] if options.nccl is not None else []
        if options.cufft is not None:
            others += [find(options.headers, name) for name in ("mufft.h", "mufftXt.h")]
        device_headers.write(options.headers[0], device, *others)
        # For the libraries' own sources: kernels must not use them.
        own = [header]
        if options.cupti is not None:
            rows = callbacks.table(options.headers[0], options.cupti)
            (options.out / "mupti_calls.inc").write_text(callbacks.render(rows))
            report["callback ids"] = callbacks.report(rows)
            own += sorted(options.headers[0].glob("mupti*.h"))
        device_headers.write(options.headers[0], options.out, *own)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for name, header, prefix in (
        ("musart", "driver_types.h", "musaError"),
        ("musa", "musa.h", "MUSA_ERROR_"),
    ):
        listed = declarations.enumerators(find(options.headers, header), prefix)
        listed.insert(0, "musaSuccess" if name == "musart" else "MUSA_SUCCESS")
        text = "".join(f"MUSA_CUDA_NAME({each})\n" for each in listed)
        (options.out / f"{name}_errors.inc").write_text(text)
    (options.out / "mapping.json").write_text(json.dumps(report, indent=1) + "\n")
    for name, rows in report.items():
        print(f"{name}: " + ", ".join(f"{len(listed)} {kind}" for kind, listed in rows.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
