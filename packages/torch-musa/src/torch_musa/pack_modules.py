# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules of `torch.musa` that a pack brings, such as `torch.musa.amp`."""

import importlib


def load(name, package, module, absence):
    """Import a pack's module to stand for one of `torch.musa`.

    Args:
        name (str): the module that the program imports, as `torch.musa.amp`.
        package (str): the pack's package.
        module (str): its module.
        absence (callable): returns the message for a pack that is not installed.

    Raises:
        ModuleNotFoundError: the pack is not installed.
    """
    try:
        importlib.import_module(f"{package}.plugin")  # a folder that pip left behind imports, and has none
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (package, f"{package}.plugin"):
            raise
        raise ModuleNotFoundError(absence(), name=name) from None


def absence(features, pack, wheel):
    """The message for a pack that is not installed.

    Args:
        features (str): what needs the pack, followed by "need".
        pack (str): its name.
        wheel (str): the distribution that holds it.
    """
    from musa_runtime.installation import command  # on errors only: it imports importlib.metadata

    return f"{features} need the pack {pack!r}, which is not installed.\nFix: {command(wheel)}"
