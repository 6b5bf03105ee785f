# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The command that installs or repairs a package of this family, from the place its packages came from.

These packages are on no package index, so a plain `pip install <name>` would install whatever is registered
under that name. Every message that recommends installing one of them takes the command from `command()`, and
a test refuses any other. Imported on errors only; standard library only.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from importlib import metadata
from urllib.parse import urlsplit
from urllib.request import url2pathname

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# Installed wherever an error of this family is raised, so the origin of other packages is read from these.
_REFERENCES = ("torch-musa", "musa-runtime")


def pip() -> str:
    """Returns the command of pip for the running interpreter, which may differ from the one on PATH."""
    return f"{shlex.quote(sys.executable or 'python')} -m pip"


def command(*names: str, reinstall: bool = False) -> str:
    """Returns the shell command that installs distributions: those of :func:`commands`, in one line."""
    return " && ".join(commands(*names, reinstall=reinstall))


def commands(*names: str, reinstall: bool = False) -> list[str]:
    """Returns the shell commands that install distributions, to be run in order.

    The source is the one pip recorded (PEP 610): the checkout, repository or folder of wheels that `names`,
    or else torch-musa itself, were installed from. pip records none for wheels that it took by name from a
    folder or an index; the command then has a placeholder to fill in.

    Args:
        names (str): distributions, such as "musa-runtime".
        reinstall (bool): replace the files of a distribution that is installed already.
    """
    # A third-party pack comes from another place.
    own = all(name == "torch-musa" or name.startswith("musa-") for name in names)
    for reference in (*names, *_REFERENCES) if own else names:
        try:
            built = _from_record(_direct_url(reference), names, reinstall)
        except (AttributeError, TypeError, ValueError):  # the record has values that pip does not write
            continue
        if built:
            return built
    place = f"<the folder or index that {'torch-musa' if own else names[0]} was installed from>"
    return [_from_folder(place, names, reinstall)]


def command_of_another_build(name: str, version: str, sdk: str) -> str:
    """Returns the shell command that replaces a distribution by a build of the same release for another SDK.

    The recorded folder has the installed build, so the command has a placeholder for the other folder. A
    package that was installed from a checkout or repository is built again, for the SDK that the build finds.

    Args:
        name (str): the distribution.
        version (str): the version of the other build if it names the SDK, such as "0.1.0+torch2.13.musa4",
            else "".
        sdk (str): the SDK in words, for the placeholder.
    """
    record = _direct_url(name)
    if isinstance(record, dict) and ("dir_info" in record or "vcs_info" in record):
        return command(name, reinstall=True)
    # Without the exact version, pip takes the highest of a folder with several builds.
    requirement = f"{name}=={version}" if version else name
    return _from_folder(f"<the folder or index of the wheels for {sdk}>", (requirement,), reinstall=True)


def _direct_url(name: str) -> Any:
    """Returns pip's record of a distribution's origin, as in PEP 610, or None."""
    try:
        return json.loads(metadata.distribution(name).read_text("direct_url.json") or "null")
    except (metadata.PackageNotFoundError, ValueError, RecursionError):
        return None


def _from_record(record: Any, names: tuple[str, ...], reinstall: bool) -> list[str] | None:
    if not isinstance(record, dict) or not isinstance(record.get("url"), str):
        return None
    url = record["url"]
    if "dir_info" in record:
        return _from_checkout(os.path.dirname(_local_path(url)), names, record["dir_info"].get("editable"))
    if "vcs_info" in record:
        folder = os.path.dirname(record.get("subdirectory", ""))
        source = f"{record['vcs_info'].get('vcs', 'git')}+{url}@{record['vcs_info'].get('commit_id', '')}"
        return _in_order(
            f"--force-reinstall {shlex.quote(f'{source}#subdirectory={folder}/{name}')}" for name in names
        )
    if not url.startswith("file:"):
        return [_from_folder(shlex.quote(url.rpartition("/")[0] + "/"), names, reinstall)]
    folder = os.path.dirname(_local_path(url))
    if all(_has_wheel(folder, name) for name in names):
        return [_from_folder(shlex.quote(folder), names, reinstall)]
    return None


def _from_checkout(packages: str, names: tuple[str, ...], editable: bool | None) -> list[str] | None:
    folders = [os.path.join(packages, name) for name in names]
    if not all(os.path.isfile(os.path.join(folder, "pyproject.toml")) for folder in folders):
        return None
    option = "-e " if editable else ""
    return _in_order(f"{option}{shlex.quote(folder)}" for folder in folders)


def _in_order(sources: Iterable[str]) -> list[str]:
    # One pip run each: a package is compiled against the previous ones, and pip builds all packages of a run
    # before it installs any.
    return [f"{pip()} install --no-build-isolation --no-deps {source}" for source in sources]


def _from_folder(folder: str, names: tuple[str, ...], reinstall: bool) -> str:
    # --no-index: with an index, pip prefers a higher version of the same name from there.
    options = "--force-reinstall --no-deps " if reinstall else ""
    return f"{pip()} install {options}--no-index --find-links {folder} {' '.join(names)}"


def _has_wheel(folder: str, name: str) -> bool:
    prefix = re.sub(r"[-_.]+", "_", name).lower() + "-"
    try:
        return any(file.lower().startswith(prefix) and file.endswith(".whl") for file in os.listdir(folder))
    except OSError:
        return False


def _local_path(url: str) -> str:
    return url2pathname(urlsplit(url).path)
