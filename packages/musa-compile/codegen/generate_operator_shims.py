# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Generates the C functions `aoti_torch_musa_<operator>`, through which C++ wrappers and ahead-of-time
compiled models call operators.

The input is the operator list and the generator of the installed torch wheel (torchgen), so each torch minor
version gets exactly the functions that its Inductor emits calls to. The functions call the dispatcher. The
output is ``operator_shims.h`` and ``operator_shims.cpp``.

    python generate_operator_shims.py --include DIR --source DIR    writes changed files only
"""

from __future__ import annotations

import argparse
import pathlib
import re

import torchgen
from torchgen.aoti.fallback_ops import inductor_fallback_ops
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.gen_aoti_c_shim import gen_aoti_c_shim, get_fallback_op_name
from torchgen.model import NativeFunction, NativeFunctionsGroup, Variant

LICENSE = "// SPDX-License-Identifier: BSD-3-Clause\n// Copyright (c) torch_musa contributors\n"
# The header's path below include/, and torchgen's name for device-independent functions.
HEADER = "musa_compile/operator_shims.h"
TORCHS_HEADER = "torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h"


def generate() -> tuple[str, str]:
    """Returns the text of the header and of the source."""
    folder = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native"
    parsed = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
    functions = sorted(
        (f for f in parsed.native_functions if get_fallback_op_name(f) in inductor_fallback_ops),
        key=get_fallback_op_name,
    )
    groups = {
        function.func.name: group
        for group in get_grouped_native_functions(parsed.native_functions)
        if isinstance(group, NativeFunctionsGroup)
        for function in group.functions()
    }
    includes = "\n".join(sorted({f"#include <ATen/ops/{f.root_name}.h>" for f in functions}))
    indices = parsed.backend_indices
    header, source = (
        _for_musa(
            # No dispatch key: the functions call the dispatcher.
            gen_aoti_c_shim(functions, inductor_fallback_ops, groups, None, indices, header, False, includes)
        )
        for header in (True, False)
    )
    for function in functions:
        if Variant.function not in function.variants:
            source = _call_by_schema(source, function)
    return header, source


def _for_musa(text: str) -> str:
    return LICENSE + text.replace("aoti_torch_aten_", "aoti_torch_musa_").replace(TORCHS_HEADER, HEADER)


def _call_by_schema(source: str, function: NativeFunction) -> str:
    """Replaces `at::<name>`, which does not exist for operators that are only tensor methods."""
    start = re.escape(f"AOTITorchError aoti_torch_musa_{_shim_name(function)}(")
    definition = re.compile(rf"^{start}.*?^}}", re.MULTILINE | re.DOTALL)
    name = function.func.name
    plain, symbolic = re.escape(f"at::{name.name}("), re.escape(f"at::symint::{name.name}<c10::SymInt>(")
    call = re.compile(f"{plain}|{symbolic}")
    entry = f"at::_ops::{name.unambiguous_name()}::call("
    changed, count = definition.subn(lambda found: call.sub(entry, found.group()), source)
    if count != 1 or changed == source:
        raise RuntimeError(f"torchgen's code for {name} has no call of at::{name.name} to replace")
    return changed


def _shim_name(function: NativeFunction) -> str:
    return get_fallback_op_name(function).split(".", 1)[1].removesuffix(".default").replace(".", "_")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    header, source = generate()
    for path, text in (
        (arguments.include / HEADER, header),
        (arguments.source / "operator_shims.cpp", source),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        # An unchanged file keeps its modification time, to avoid recompilation.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
