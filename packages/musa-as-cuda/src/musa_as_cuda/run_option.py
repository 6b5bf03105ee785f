# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The option of `python -m torch_musa run --as-cuda script.py`."""

import contextlib
import os


@contextlib.contextmanager
def as_cuda():
    """Turns the switch on for a program and, by an environment variable, for its child processes."""
    from .switch import enabled

    before = os.environ.get("TORCH_MUSA_AS_CUDA")
    os.environ["TORCH_MUSA_AS_CUDA"] = "1"
    try:
        with enabled():
            yield
    finally:
        if before is None:
            del os.environ["TORCH_MUSA_AS_CUDA"]
        else:
            os.environ["TORCH_MUSA_AS_CUDA"] = before
