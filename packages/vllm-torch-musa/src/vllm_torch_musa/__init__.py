# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""vLLM's platform plug-in for the device "musa".

vLLM calls `platform`, the entry point `musa` of the group `vllm.platform_plugins`. This module imports
neither torch nor vLLM.
"""

from __future__ import annotations

import importlib.util


def platform() -> str | None:
    """Returns the qualified name of the platform class, or None if no musa device is visible.

    vLLM then uses another platform, or reports that it found none.
    """
    if importlib.util.find_spec("torch_musa") is None:
        return None
    import torch

    musa = getattr(torch, "musa", None)
    if musa is None or not musa.is_available():
        return None
    return "vllm_torch_musa.platform.MusaPlatform"
