# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks that packages are of the same release; they pin each other, as `musa-runtime==0.1.*`.

pip checks this on installation, but not with `--no-deps`, and only warns when it replaces a package that
others require. A pack of another release is therefore rejected when packs load.
"""

from . import extras


def unmet(requirements):
    """Returns requirements on packages of this project that the installed versions do not meet.

    Only `name==1.2.*` and `name==1.2.3` are evaluated, because these packages use no other form.

    Args:
        requirements (iterable of str): those of one distribution, or None.

    Returns:
        list of (str, str, str): requirement, required distribution, and its installed version.
    """
    found = []
    for requirement in requirements or ():
        pinned, equals, version = requirement.partition(";")[0].partition("==")
        name, version = pinned.strip().lower().replace("_", "-"), version.strip()
        if ";" in requirement or not equals or not extras.is_family(name):
            continue
        have = extras.version(name)
        prefix = version.removesuffix("*")
        meets = have is None or (have.startswith(prefix) if prefix != version else have == version)
        if not meets:
            found.append((requirement.strip(), name, have))
    return found
