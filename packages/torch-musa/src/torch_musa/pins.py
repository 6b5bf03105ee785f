# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Packages of one release require each other by its number, as `musa-runtime==0.1.*`.

pip checks that when it installs, but not with `--no-deps`, and only warns when it replaces a package that
others require. A pack of another release is therefore refused when packs load.
"""

from . import extras


def unmet(requirements):
    """The requirements of packages of this project that what is installed does not meet.

    Only pins as `name==1.2.*` and `name==1.2.3` count, the only ones among these packages.

    Args:
        requirements (iterable of str): of one distribution, or None.

    Returns:
        list of (str, str, str): the requirement, the distribution that it names and its installed version.
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
