# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The import hook: turns the switch on at the end of `import torch` if TORCH_MUSA_AS_CUDA=1."""

import os
import warnings


def musa_import(musa):
    """Called by torch-musa at the end of `import torch`."""
    if os.environ.get("TORCH_MUSA_AS_CUDA", "0") in ("", "0"):
        return
    from musa_runtime import switches
    from musa_runtime.errors import SettingError

    from .switch import AsCudaError, enable

    try:
        switches.flag("TORCH_MUSA_AS_CUDA")
        enable()
    except (AsCudaError, SettingError) as error:
        # An exception here does not end the program, which would then run without the switch; hence
        # the warning.
        warnings.warn(f"TORCH_MUSA_AS_CUDA has no effect: {error}", stacklevel=1)
        raise
