# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ports Python programs from CUDA to MUSA.

musa-converter -r project               writes project_musa, a copy with CUDA's names replaced by MUSA's
musa-converter -r project -l train.py   also inserts `import torch_musa` into project_musa/train.py
musa-converter -r project -o target     writes to another folder
musa-converter -r project -e a,b.py     leaves out files and folders
musa-converter -r train.py              writes train_musa.py
musa-converter -r project --dry-run     prints the changes as a diff
"""

import argparse
import difflib
import io
import re
import shutil
import sys
import tokenize
from importlib import metadata
from pathlib import Path

from musa_runtime.command_line import Parser

# Whole names, replaced everywhere in Python code.
NAMES = {
    "CUDAExtension": "MUSAExtension",
    "CUDAGraph": "MUSAGraph",
    "CUDAPluggableAllocator": "MUSAPluggableAllocator",
    "CUDA_HOME": "MUSA_HOME",
    "cudart": "musart",
    "cudnn": "mudnn",
    "is_cuda": "is_musa",
    "is_nccl_available": "is_mccl_available",
    "ProcessGroupNCCL": "ProcessGroupMCCL",
}
# Names after a dot: attributes of torch, tensors, modules and devices.
ATTRIBUTES = {"cuda": "musa", "CUDA": "MUSA", "nccl": "mccl", "nvtx": "mttx"}
# Modules by full path.
MODULES = {
    "torch.utils.cpp_extension": "torch_musa.utils.musa_extension",
}
# Whole string values.
STRINGS = {
    "nccl": "mccl",
    "CUDA_VISIBLE_DEVICES": "MUSA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING": "MUSA_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_MUSA_ALLOC_CONF",
}
_DEVICE = re.compile(r"^(cuda)(?=$|:)")
_LITERAL = re.compile(r"""(?s)([A-Za-z]*)('''|\"\"\"|'|")(.*)\2""")
_SKIPPED = {".git", "__pycache__", "build", "dist", ".venv"}
_FSTRING_MIDDLE = getattr(tokenize, "FSTRING_MIDDLE", None)  # Python 3.12 and later


def convert(text):
    """Returns a program with the names of CUDA replaced. Comments, docstrings and layout are kept.

    Args:
        text (str): Python source.

    Returns:
        str: the converted source.

    Raises:
        SyntaxError, tokenize.TokenError: if the text is not valid Python.
    """
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    edits = []
    for index, token in enumerate(tokens):
        after = _after(tokens, index)
        if after != token.string:
            edits.append((token.start, token.end, after))
    for (row, begin), (last, end), after in reversed(edits):
        tail = lines[last - 1][end:]
        lines[row - 1 : last] = [lines[row - 1][:begin] + after + tail]
    return _modules(lines)


def _after(tokens, index):
    token = tokens[index]
    if token.type == tokenize.NAME:
        if token.string in NAMES:
            return NAMES[token.string]
        before = tokens[index - 1].string if index else ""
        # `from torch import cuda` has no dot before the name.
        imported = before in ("import", ",") and token.line.lstrip().startswith("from torch import")
        if token.string in ATTRIBUTES and (before == "." or imported):
            return ATTRIBUTES[token.string]
    elif token.type == tokenize.STRING:
        found = _LITERAL.fullmatch(token.string)
        if found is not None:
            return f"{found[1]}{found[2]}{_string(found[3])}{found[2]}"
    elif token.type == _FSTRING_MIDDLE and tokens[index - 1].type == tokenize.FSTRING_START:
        return _DEVICE.sub("musa", token.string)
    return token.string


def _string(value):
    return STRINGS.get(value) or _DEVICE.sub("musa", value)


def _modules(lines):
    """Renames modules in imports that import a name of MUSA."""
    text = "".join(lines)
    for before, after in MODULES.items():
        pattern = rf"(?m)^(\s*from )({re.escape(before)})( import (?:\([^)]*\bMUSA|.*\bMUSA))"
        text = re.sub(pattern, rf"\g<1>{after}\g<3>", text)
    return text


def with_import(text):
    """Inserts `import torch_musa` before the first import, unless the text contains it."""
    if re.search(r"(?m)^\s*import torch_musa\b", text):
        return text
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        future = line.startswith("from __future__")
        if re.match(r"(import|from)\s", line) and not future:
            return "".join([*lines[:number], "import torch_musa\n", *lines[number:]])
    return f"import torch_musa\n{text}"


def _parser():
    parser = Parser(
        prog="musa-converter",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        version=lambda: f"musa-converter {metadata.version('musa-compat')}",
    )
    # The options with underscores are those of the vendor's manual, in its spelling.
    parser.add_argument(
        *("-r", "--root", "--root_path"), type=Path, required=True, help="the folder or file of the program"
    )
    parser.add_argument(
        *("-l", "--launch", "--launch_path"),
        type=Path,
        action="append",
        default=[],
        help="an entry point of the program",
    )
    parser.add_argument(
        *("-e", "--exclude", "--excluted_path"),
        default="",
        help="files and folders to leave out, with commas; relative to the current folder or the root",
    )
    parser.add_argument("-o", "--output", type=Path, help="the output folder (default: <root>_musa)")
    parser.add_argument("--dry-run", action="store_true", help="print the changes without writing files")
    return parser


def main(arguments=None):
    """Runs the command line. Returns 0, 1 if a file is not valid Python, 2 for invalid arguments."""
    options = _parser().parse_args(arguments)
    root = options.root.resolve()
    output = options.output or root.with_name(f"{root.stem}_musa{root.suffix}")
    try:
        if not root.exists():
            raise ValueError(f"there is no folder or file {options.root}")
        launched = _within(options.launch, root, "-l", Path.is_file)
        excluded = _within(map(Path, filter(None, options.exclude.split(","))), root, "-e", Path.exists)
        if not options.dry_run and output.exists():
            raise ValueError(f"{output} exists. Fix: remove it, or name another folder with -o")
        if root.is_dir() and output.resolve().is_relative_to(root):
            raise ValueError(f"{output} is inside of {root}. Fix: name another folder with -o")
    except ValueError as error:
        print(f"musa-converter: {error}", file=sys.stderr)
        return 2
    changed, failed = 0, 0
    for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
        name = path.relative_to(root)
        if not path.is_file() or _SKIPPED & set(name.parts):
            continue
        if path.suffix != ".py" or excluded & {path, *path.parents}:
            _copy(path, output / name, options.dry_run)
            continue
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        try:
            after = convert(text)
        except (SyntaxError, tokenize.TokenError) as error:
            print(f"musa-converter: {path} was copied unchanged: {error}", file=sys.stderr)
            failed += 1
            after = text
        if path in launched:
            after = with_import(after)
        changed += after != text
        _write(path, text, after, output / name, options.dry_run)
    print(f"musa-converter: {changed} files changed, {failed} not parsed, in {output}", file=sys.stderr)
    return 1 if failed else 0


def _within(paths, root, option, exists):
    """Returns absolute paths in the root, resolved against the current folder, then the root."""
    found = set()
    for path in paths:
        candidates = [each.resolve() for each in (path, root / path) if exists(each)]
        if not candidates or not candidates[0].is_relative_to(root):
            raise ValueError(f"{option} {path}: there is no such file in {root}")
        found.add(candidates[0])
    return found


def _copy(path, target, dry_run):
    if not dry_run:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _write(path, before, after, target, dry_run):
    if dry_run:
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(path), str(target), n=1)
        )
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(after, encoding="utf-8", errors="surrogateescape")
    shutil.copymode(path, target)


if __name__ == "__main__":
    sys.exit(main())
