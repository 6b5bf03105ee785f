# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The extras of torch-musa and the distributions that they install, read from its installed metadata.

They are the one place that lists the packs of this project, so that no code has to. Imported on failures and
by the command line only.
"""

import functools
import re
from importlib import metadata

UMBRELLA = "torch-musa"


@functools.cache
def installs():
    """`{extra: [distribution, ...]}`, with extras that name other extras (`all`) resolved."""
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
    """Names of every distribution of this project that torch-musa requires or can install, and itself."""
    required = [re.match(r"[\w.-]+", text).group() for text in _requirements()]
    return list(dict.fromkeys([UMBRELLA, *(name for name in required if is_family(name))]))


def is_family(name):
    """Whether a distribution has a name of this project's."""
    return name == UMBRELLA or name.startswith("musa-")


def missing(extra):
    """The distributions of an extra that are not installed; empty if there is no such extra."""
    return [name for name in installs().get(extra, ()) if version(name) is None]


def version(dist):
    """The version of a distribution; None if it is not installed."""
    try:
        return metadata.version(dist)
    except metadata.PackageNotFoundError:
        return None
