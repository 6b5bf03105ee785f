# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the headers of the vendor's layout, for a folder `torch_musa` in site-packages.

    python layout.py FOLDER RUNTIME_INCLUDE

* `csrc/`: the headers of headers.toml. Each includes another one by its relative path.
* `share/generated_cuda_compatible/include/`: torch's CUDA headers, ported by musa-port.
* In that folder, in `include/` and in `csrc/`: the headers of the runtime, which include each other as
  `<c10/musa/...>` and `<ATen/musa/...>`. Foreign builds have one of the three on the include path.
"""

import posixpath
import shutil
import sys
from pathlib import Path

import musa_port

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GENERATED = "share/generated_cuda_compatible/include"
NAMES = "vendor_names.h"
HEAD = "// SPDX-License-Identifier: BSD-3-Clause\n// Copyright (c) torch_musa contributors\n#pragma once\n\n"


def write_forward(folder: Path, name: str, *targets: str) -> None:
    """Writes the header `torch_musa/<name>`, which includes files of site-packages."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    here = posixpath.dirname(f"torch_musa/{name}")
    path.write_text(HEAD + "".join(f'#include "{posixpath.relpath(target, here)}"\n' for target in targets))


def write_layout(folder: Path, runtime_include: Path) -> None:
    """Writes all headers.

    Raises:
        SystemExit: if a header of headers.toml includes a header that neither the runtime nor torch has.
    """
    generated = folder / GENERATED
    shutil.rmtree(folder, ignore_errors=True)
    musa_port.port_torch_headers(generated)
    shutil.copytree(musa_port.include_dir() / "ATen/native", generated / "ATen/native", dirs_exist_ok=True)
    ported = [path for part in ("ATen/musa", "c10/musa") for path in sorted((generated / part).iterdir())]
    for path in ported:
        if path.name.startswith("MUSA"):
            # The vendor's porting tool gives some headers this prefix.
            alias = (
                f"{GENERATED}/{path.parent.relative_to(generated)}/MUSA_PORT_{path.name.removeprefix('MUSA')}"
            )
            write_forward(folder, alias, f"torch_musa/{path.relative_to(folder)}")
    of_runtime = {
        header.relative_to(runtime_include).as_posix()
        for part in ("ATen", "c10")
        for header in (runtime_include / part).rglob("*.h")
    }
    for place in (GENERATED, "include", "csrc"):
        for name in of_runtime:
            write_forward(folder, f"{place}/{name}", f"musa_runtime/include/{name}")
    shutil.copy(Path(__file__).parent / NAMES, folder / "csrc" / NAMES)
    table = tomllib.loads((Path(__file__).parent / "headers.toml").read_text(encoding="utf-8"))
    missing = sorted(target for target in table.values() if not (generated / target).is_file())
    if missing:
        raise SystemExit(
            f"headers.toml includes {', '.join(missing)}, which neither musa_runtime nor torch has.\n"
            "Likely causes: a renamed header of musa_runtime; a torch that removed a CUDA header.\n"
            "Fix: change the entry in packages/musa-compat/codegen/headers.toml"
        )
    for name, target in table.items():
        found = (
            f"musa_runtime/include/{target}" if target in of_runtime else f"torch_musa/{GENERATED}/{target}"
        )
        write_forward(folder, name, found, f"torch_musa/csrc/{NAMES}")


if __name__ == "__main__":
    write_layout(Path(sys.argv[1]), Path(sys.argv[2]))
