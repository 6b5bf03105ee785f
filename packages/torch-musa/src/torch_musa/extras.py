# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The extras of torch-musa and the distributions that they install, read from its installed metadata.

The metadata is the only place that lists this project's packs, so no code has to. Imported only on failures
and by the command line.
"""

import functools
import re
from importlib import metadata

UMBRELLA = "torch-musa"


@functools.cache
def installs():
    """Returns `{extra: [distribution, ...]}`; extras that name other extras (`all`) are resolved."""
    direct = {}
    for requirement in _requirements():
        extra = re.search(r"""extra\s*==\s*["']([^"']+)["']""", requirement)
        name, others = re.match(r"([\w.-]+)\s*(?:\[([^]]*)\])?", requirement).groups()
        if extra:
            direct.setdefault(extra.group(1), []).append((name, others))
    return {extra: _resolve(direct, extra) for extra in direct}


def _requirements():
    try:
        return metadata.requires(UMBRELLA) or ()
    except metadata.PackageNotFoundError:  # sources on PYTHONPATH, which the doctor reports
        return ()


def _resolve(direct, extra):
    found = []
    for name, others in direct[extra]:
        if name == UMBRELLA:
            found += [dist for other in others.split(",") for dist in _resolve(direct, other.strip())]
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def family():
    """Returns the names of torch-musa and all distributions of this project that it can install."""
    required = [re.match(r"[\w.-]+", text).group() for text in _requirements()]
    return list(dict.fromkeys([UMBRELLA, *(name for name in required if is_family(name))]))


def is_family(name):
    """Whether a distribution's name is one of this project's."""
    return name == UMBRELLA or name.startswith("musa-")


def missing(extra):
    """Returns the distributions of an extra that are not installed; empty for an unknown extra."""
    return [name for name in installs().get(extra, ()) if version(name) is None]


def why_missing(subject, extra):
    """Returns the error message for something that needs an extra, with the fix; None if it is installed or
    unknown.

    Args:
        subject (str): the beginning of the message, such as "torch.musa.amp".
        extra (str): the name of the extra.
    """
    from musa_runtime.installation import command

    wheels = missing(extra)
    if not wheels:
        return None
    are = "which is" if len(wheels) == 1 else "which are"
    named = f"{' and '.join(wheels)} (the extra torch-musa[{extra}])"
    return f"{subject} needs {named}, {are} not installed.\nFix: {command(*wheels)}"


def version(dist):
    """Returns the version of a distribution, or None if it is not installed."""
    try:
        return metadata.version(dist)
    except metadata.PackageNotFoundError:
        return None
