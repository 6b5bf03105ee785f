# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Generates the C++ sources of musa-ops-ported, and writes only those that changed."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from musa_runtime.command_line import Parser

from . import emit
from .catalog import OPS, Catalog, CatalogError


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m musa_ops_ported.codegen",
        description=__doc__,
        version=lambda: metadata.version("musa-ops-ported"),
    )
    parser.add_argument("--ops", type=Path, default=OPS, help="the list of operators")
    parser.add_argument("--out", type=Path, required=True, help="the output folder")
    parser.add_argument(
        "--shards", type=int, required=True, help="the number of files that register operators"
    )
    parser.add_argument("--kernels", nargs="+", help="the kernel files; by default those in the list")
    options = parser.parse_args(arguments)
    try:
        catalog = Catalog(options.ops)
        operators = catalog.operators
        kernels = options.kernels or catalog.sources()
        if others := [source for source in catalog.sources() if source not in kernels]:
            raise CatalogError(f"{', '.join(others)}: not among the kernel files of CMakeLists.txt")
    except CatalogError as error:
        print(f"{options.ops}: {error}", file=sys.stderr)
        return 1
    files = {"declare_operators.cpp": emit.pack_source(options.shards)}
    for source in kernels:
        own = [operator for operator in operators if operator.source == source]
        files[emit.header_name(source)] = emit.kernels_header(own)
    for shard, chosen in enumerate(emit.shards(operators, options.shards)):
        files[f"register_{shard}.cpp"] = emit.registration(chosen, shard)
    (options.out / "kernels").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = options.out / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
