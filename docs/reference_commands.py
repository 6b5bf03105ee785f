# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the reference of the command line from what the programs print for `--help`.

python docs/reference_commands.py --out FILE
"""

import os
import subprocess
import sys

import pages

INTRODUCTION = """\
# Command line

Written by `python docs/reference_commands.py` from the output of `--help`.

"""
COMMANDS = (
    ("torch_musa",),
    ("torch_musa", "doctor"),
    ("torch_musa", "packs"),
    ("torch_musa", "ops"),
    ("torch_musa", "env"),
    ("torch_musa", "stubs"),
    ("musa_runtime.config",),
    ("musa_port",),
)


def help_of(command):
    """What `python -m COMMAND --help` prints, 80 columns wide.

    Raises:
        subprocess.CalledProcessError: if the program fails.
    """
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command, "--help"],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    ).stdout


def page():
    text = INTRODUCTION
    for command in COMMANDS:
        text += f"## python -m {' '.join(command)}\n\n```text\n{help_of(command)}```\n\n"
    return text


if __name__ == "__main__":
    pages.main(page, __file__, __doc__)
