# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Sphinx extension: the directive `commands` shows the `--help` of each command of a program."""

import re
import shlex
import subprocess

from sphinx.util.docutils import SphinxDirective

# A line of `--help` that begins with the name of a command.
COMMAND = re.compile(r"^ {2,4}([a-z][\w-]*)(?:  |$)", re.MULTILINE)


def commands_of(program):
    """The names of a program's commands, as its `--help` lists them."""
    done = subprocess.run([*shlex.split(program), "--help"], capture_output=True, text=True, check=True)
    return list(dict.fromkeys(COMMAND.findall(done.stdout)))


class Commands(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        program = self.arguments[0]
        text = "".join(
            f"## {name}\n\n```{{command-output}} {program} {name} --help\n```\n\n"
            for name in commands_of(program)
        )
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
