# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Long tests whose result depends on some files alone: a recorded pass is valid until one of them changes.

``@pytest.mark.recorded("packages/musa-emulator/csrc", ...)`` names the files and folders. The test is skipped
while the digest of their code equals the recorded one, and runs otherwise. Comments of C++, CMake and Python
are not part of the digest. With --full it always runs, and a pass is recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pygments import token
from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.make import CMakeLexer
from pygments.lexers.python import PythonLexer

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(os.environ.get("MUSA_TESTS_RECORDS") or ROOT / "tests" / "data" / "recorded_passes.json")
# The versions of torch and of the build tools decide as well.
ALWAYS = ("requirements-dev.txt", "tests/harness/sanitized.cmake")
_CPP, _PYTHON, _CMAKE = CppLexer(), PythonLexer(), CMakeLexer()
_LEXERS: dict[str, Lexer] = {
    **dict.fromkeys((".cpp", ".cu", ".cuh", ".h", ".hpp", ".inl", ".mu", ".muh"), _CPP),
    ".py": _PYTHON,
    ".cmake": _CMAKE,
    "CMakeLists.txt": _CMAKE,
}
_CODE_AMONG_COMMENTS = (token.Comment.Preproc, token.Comment.PreprocFile)  # Pygments' names of directives
_GENERATED = {"build", "__pycache__"}


def _files(root: Path, name: str) -> list[Path]:
    path = root / name
    if path.is_file():
        return [path]
    found = (file for file in path.rglob("*") if file.is_file())
    files = sorted(file for file in found if not _GENERATED.intersection(file.relative_to(path).parts))
    if not files:
        raise FileNotFoundError(f"a recorded test names {name}, which holds no file under {root}")
    return files


def _is_code(kind: Any) -> bool:
    return kind not in token.Comment or any(kind in directive for directive in _CODE_AMONG_COMMENTS)


@cache
def _code(file: Path, modified_ns: int) -> bytes:
    """The content without comments and the empty lines that they leave, where the language is known."""
    content = file.read_bytes()
    lexer = _LEXERS.get(file.suffix) or _LEXERS.get(file.name)
    if lexer is None:
        return content
    kept = "".join(text for kind, text in lexer.get_tokens(content.decode()) if _is_code(kind))
    return "\n".join(line.rstrip() for line in kept.splitlines() if line.strip()).encode()


def digest(names: Iterable[str], root: Path = ROOT) -> str:
    """A digest of the names and the code of the files.

    Raises:
        FileNotFoundError: if a name is neither a file nor a folder with files.
    """
    result = hashlib.sha256()
    for name in sorted({*names, *ALWAYS}):
        for file in _files(root, name):
            content = _code(file, file.stat().st_mtime_ns)
            result.update(f"{file.relative_to(root)}:{len(content)}:".encode() + content)
    return result.hexdigest()


def read(path: Path = RECORDS) -> dict[str, str]:
    """The digest under which each recorded test passed last, by the test's id."""
    return json.loads(path.read_text()) if path.is_file() else {}


def write(passed: Mapping[str, str], failed: Iterable[str], path: Path = RECORDS) -> None:
    """Add what passed, and remove what failed, in the records."""
    records = {**read(path), **passed}
    for name in failed:
        records.pop(name, None)
    path.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
