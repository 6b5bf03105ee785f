# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules of `torch.musa` that a pack brings, such as `torch.musa.amp`."""

import importlib


def load(name, package, module, explanation):
    """Import a pack's module to stand for one of `torch.musa`.

    Args:
        name (str): what the program imports, as `torch.musa.amp`.
        package (str): the pack's package.
        module (str): its module.
        explanation (str): what to say where the pack is not installed.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    try:
        importlib.import_module(f"{package}.plugin")  # a folder that pip left behind imports, and has none
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (package, f"{package}.plugin"):
            raise
        raise ModuleNotFoundError(explanation, name=name) from None
