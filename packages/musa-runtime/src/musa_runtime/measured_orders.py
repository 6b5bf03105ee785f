# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The file with measured orders of providers, which `python -m torch_musa tune` writes.

It is read at the first use of the device, before kernels are installed. It holds for one device type and for
the versions that it names; in another environment it is ignored with a warning.
"""

from __future__ import annotations

import json
import os
import re
import warnings

from . import _load, policy
from .errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VARIABLE = "TORCH_MUSA_OPS_FILE"
NO_FILE = "none"
FORMAT = 1


class MeasuredOrdersWarning(UserWarning):
    """A file with measured orders is not used."""


class UnreadableOrdersError(ValueError):
    """The file cannot be read, or its contents are no orders."""


class State:
    """The state of the file in this process.

    Attributes:
        path (str or None): the file; None if there is none.
        content (dict or None): its content, None if it cannot be read.
        problem (str or None): why it is not used.
        applied (bool): whether its orders are in use.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self.content: dict[str, Any] | None = None
        self.problem: str | None = None
        self.applied = False


_state = State()


def state() -> State:
    """Returns the state of the file, as found at the first use of the device."""
    return _state


def folder() -> str:
    """Returns the folder of the files that are read without `TORCH_MUSA_OPS_FILE`."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    # The specification of XDG ignores relative paths.
    config = config if os.path.isabs(config) else os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(config, "torch_musa", "orders")


def default_path(device: str) -> str:
    """Returns the path of the file for devices of a name."""
    return os.path.join(folder(), re.sub(r"\W+", "_", device).strip("_") + ".json")


def chosen_path() -> str:
    """Returns the path that `TORCH_MUSA_OPS_FILE` names, otherwise the path of the device's file, or "" if no
    file is to be read. The device must be available."""
    value = os.environ.get(VARIABLE, "")
    if value:
        return "" if value == NO_FILE else value
    return default_path(_load.extension().get_device_properties(0).name)


def identity(packs: Mapping[str, str]) -> dict[str, Any]:
    """Returns the properties of the device and the versions for which measured orders hold.

    Args:
        packs (dict of str to str): version of each distribution whose pack is loaded and has providers.
    """
    import torch

    from . import __version__

    native = _load.extension()
    device = native.get_device_properties(0)
    sdk = _load.load().sdk
    return {
        "device": {
            "name": device.name,
            "capability": f"{device.major}.{device.minor}",
            "multiprocessors": device.multi_processor_count,
            "host_addressable": native.host_addressable(),
        },
        "torch": ".".join(torch.__version__.split("+")[0].split(".")[:2]),
        "musa-runtime": __version__,
        "SDK": (sdk.version if sdk else None) or "unknown",
        "packs": dict(sorted(packs.items())),
    }


def differences(measured: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each part of an identity that differs from that of this process."""
    found = []
    for part in ("device", "packs"):
        then, now = measured.get(part) or {}, present[part]
        # A pack that was measured but is not loaded here, for example because it is disabled, is no
        # difference: the measured order of the others still holds.
        for name, value in now.items():
            if then.get(name) != value:
                label = name if part == "packs" else f"device's {name.replace('_', ' ')}"
                found.append(f"{label}: measured {_shown(then.get(name))}, now {_shown(value)}")
    for name in ("torch", "musa-runtime", "SDK"):
        if measured.get(name) != present[name]:
            found.append(f"{name}: measured {_shown(measured.get(name))}, now {_shown(present[name])}")
    return found


def _shown(value: object) -> str:
    return "without it" if value is None else f"with {value}"


def read(path: str) -> dict[str, Any]:
    """Returns the content of a file.

    Raises:
        UnreadableOrdersError: names the cause.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        raise UnreadableOrdersError(f"it cannot be read: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UnreadableOrdersError(f'it has no "format": {FORMAT}')
    rows = content.get("operators")
    if not isinstance(content.get("identity"), dict) or not isinstance(rows, dict):
        raise UnreadableOrdersError('it lacks "identity" or "operators"')
    for name, row in rows.items():
        order = row.get("order") if isinstance(row, dict) else None
        also = row.get("also", []) if isinstance(row, dict) else None
        if not _are_names(order) or not _are_names(also):
            raise UnreadableOrdersError(f"the entry of {name} has no list of providers")
    return content


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def orders(content: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the order of providers for each operator of a file's content."""
    by_op = {}
    for name, row in content["operators"].items():
        for op in (name, *row.get("also", ())):
            by_op[op] = [policy.ALIASES.get(provider, provider) for provider in row["order"]]
    return by_op


def apply(packs: Mapping[str, str]) -> None:
    """Reads the file, if there is one, and passes its orders to the registry.

    Args:
        packs (dict of str to str): as in :func:`identity`.

    Raises:
        SettingError: if `TORCH_MUSA_OPS_FILE` names a file that is missing or cannot be read.
    """
    global _state
    named = os.environ.get(VARIABLE, "")
    _state = State()
    if named == NO_FILE or (not named and not os.path.isdir(folder())):
        return
    path = chosen_path()
    if not named and not os.path.exists(path):
        return
    _state = found = State(os.path.abspath(path))
    try:
        found.content = read(path)
        by_op = orders(found.content)
    except UnreadableOrdersError as error:
        found.problem = str(error)
        if named:
            raise SettingError(
                f"{VARIABLE}={named!r} is not usable: {error}.\n"
                f"Fix: correct the path, measure again (python -m torch_musa tune), or unset {VARIABLE}",
                f"unset {VARIABLE}",
            ) from error.__cause__
        _warn(found)
        return
    changed = differences(found.content["identity"], identity(packs))
    if changed:
        found.problem = "it was measured in another environment: " + "; ".join(changed)
        _warn(found)
        return
    _load.extension().ops_set_measured(found.path, by_op)
    found.applied = True


def _warn(found: State) -> None:
    warnings.warn(
        f"the orders of providers in {found.path} are not used: {found.problem}.\n"
        f"Fix: python -m torch_musa tune measures again; {VARIABLE}={NO_FILE} reads no file",
        MeasuredOrdersWarning,
        stacklevel=2,
    )
