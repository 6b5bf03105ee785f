# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Sphinx extension that warns of names that do not exist: Python, C++ and verbs of `tools/dev.py`."""

import importlib
import importlib.util
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
PYTHON = re.compile(
    r"(?<![\w./-])(?:torch\.musa|torch\.backends\.(?:mudnn|musa)|torch_musa)(?:\.[A-Za-z_]\w*)+"
)
CPP = re.compile(r"(?<![\w:])(?:c10::musa|at::musa|musa_runtime)::(\w+)")
VERB = re.compile(r"tools/dev\.py ([a-z]\w*)")
# Names that look like attributes: entry point groups, operators of namespace torch_musa, a placeholder.
NOT_NAMES = re.compile(
    r"torch_musa\.(?:(?:import|modules|plugins|submodules|attributes|run_options)(?:\.v2)?|contract|backend_placeholders"
    r"|names_of_extras|swiglu|rope)"
    r"|torch[._]musa\.(?:foo|demo)"
)


def exists(name):
    """Whether a dotted name is a module or an attribute.

    The module itself is not imported, because it may need a package that is not installed, or change the
    process, as `torch_musa.as_cuda` does.
    """
    import torch  # noqa: F401 - loads torch.musa

    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            if length == len(parts) and name not in sys.modules and importlib.util.find_spec(name):
                return True
            value = importlib.import_module(".".join(parts[:length]))
            return all((value := getattr(value, part, None)) is not None for part in parts[length:])
        except ModuleNotFoundError:
            continue
    return False


def problems(text, verbs=(), declared=()):
    """Yields a message for each name in a text that does not exist. declared: the C++ names."""
    for name in PYTHON.findall(text):
        if not NOT_NAMES.fullmatch(name) and not exists(name):
            yield f"there is no {name}"
    yield from (f"the C++ headers declare no {name}" for name in CPP.findall(text) if name not in declared)
    yield from (f"tools/dev.py has no verb {verb}" for verb in VERB.findall(text) if verb not in verbs)


def check(app, doctree):
    import dev

    index = Path(app.config.breathe_projects["musa-runtime"], "index.xml").read_text(encoding="utf-8")
    declared = {name.rpartition("::")[2] for name in re.findall(r"(?<=<name>)[\w:]+", index)}
    # Design notes also name declarations of headers that the reference leaves out.
    for header in re.findall(r"packages/\S+\.h", (ROOT / "docs" / "Doxyfile").read_text()):
        declared.update(re.findall(r"\w+", (ROOT / header).read_text(encoding="utf-8")))
    for node in doctree.findall(lambda node: isinstance(node, (nodes.literal, nodes.literal_block))):
        text = node.astext()
        if isinstance(node, nodes.literal_block):
            text = "\n".join(match[0] for match in VERB.finditer(text))
        # A row of a table about a name that is not provided ends with "no: REASON".
        row = node.parent.parent.parent if isinstance(node.parent.parent, nodes.entry) else None
        if row is None or not row[-1].astext().startswith("no: "):
            for problem in problems(text, dev.VERBS, declared):
                logging.getLogger(__name__).warning(problem, location=node)


def setup(app):
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True}
