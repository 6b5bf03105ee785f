# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A stand-in for a MUSA compiler that is not the emulator's: it refuses every unknown option.

It accepts clang's options of a usual command line and some architectures, refuses others as clang does,
records its arguments, and runs the emulator's mcc with them.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

_SCRIPT = """#!{python}
import json, os, re, sys
KNOWN = re.compile(
    r"-x|musa|-c|-o|-O[0-3s]|-g|-v|-MD|-MF|-MT|-fPIC|-std=c\\\\+\\\\+(14|17|20)|-U\\\\w+|-D.+|-I.+|-isystem.*|-idirafter.+"
    r"|-include|-W(?!no-maybe-uninitialized)[\\\\w=+-]*|-f(no-)?tree-vectorize|-fvisibility=hidden"
    r"|-fvisibility-inlines-hidden|--offload-arch=mp_({archs})"
)
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(arguments) + "\\\\n")
for i, argument in enumerate(arguments):
    if argument.startswith("-") and not KNOWN.fullmatch(argument):
        sys.exit(f"clang: error: unknown argument: {{argument!r}}")
os.execv({mcc!r}, [{mcc!r}, *arguments])
"""


class ForeignCompiler:
    """The script in a folder, which runs the emulator's mcc.

    Attributes:
        path (Path): the compiler.
        calls (list of list of str): the arguments of each call so far.
    """

    def __init__(self, folder: Path, mcc: Path, archs: str = "22|31") -> None:
        self.path = folder / "mcc"
        self._log = folder / "calls.jsonl"
        text = _SCRIPT.replace("\\\\", "\\").format(
            python=sys.executable, archs=archs, log=str(self._log), mcc=str(mcc)
        )
        self.path.write_text(text)
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    @property
    def calls(self) -> list[list[str]]:
        if not self._log.is_file():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]
