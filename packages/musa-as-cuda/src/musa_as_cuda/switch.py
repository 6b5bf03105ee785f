# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The switch: turns the translation on and off, for a block or for the whole process."""

import atexit
import contextlib
import functools

import torch

from musa_runtime.errors import MusaError
from musa_runtime.import_actions import after_import

from . import checkpoints, replacements, state, threads
from .mode import AsCuda, is_active


class AsCudaError(MusaError):
    """The switch cannot be turned on or off in this state."""


def is_enabled():
    """Whether the switch is on in this process."""
    return state.depth > 0


@contextlib.contextmanager
def enabled(over_cuda=False):
    """Code in the block that names the device "cuda" uses musa. Blocks may be nested.

    Args:
        over_cuda (bool): also if torch can use CUDA devices, which the block then cannot use.

    Raises:
        AsCudaError: if torch can use a CUDA device and `over_cuda` is False.
    """
    enable(over_cuda)
    try:
        yield
    finally:
        disable()


def enable(over_cuda=False):
    """Turns the switch on. Each call needs a :func:`disable`. See :func:`enabled` for errors."""
    if state.depth == 0:
        if not over_cuda:
            _refuse_beside_cuda()
        replacements.install()
        _follow_import()
        checkpoints.register()
        threads.follow()
        state.mode = AsCuda()
        state.mode.__enter__()
        atexit.register(_leave_at_exit)
    state.depth += 1


def disable():
    """Turns the switch off and restores torch.

    Raises:
        AsCudaError: if it is off, or another mode was entered since and is still on.
    """
    if state.depth == 0:
        raise AsCudaError(
            "musa_as_cuda.disable() was called, but the switch is off.\n"
            "Fix: call enable() first, or remove the call"
        )
    if state.depth == 1:
        modes = torch.overrides._get_current_function_mode_stack()
        if not modes or modes[-1] is not state.mode:
            raise AsCudaError(
                "musa_as_cuda cannot be turned off here.\n"
                "Likely causes: another thread turned it on; a block such as `with torch.device(...)` was "
                "entered since and has not been left\n"
                "Fix: call disable() on the thread of enable(), outside of such blocks"
            )
        state.mode.__exit__(None, None, None)
        state.mode = None
        threads.unfollow()
        checkpoints.unregister()
        replacements.uninstall()
        atexit.unregister(_leave_at_exit)
    state.depth -= 1


@functools.cache
def _follow_import():
    after_import(replacements.LATE_MODULE, _install_late)


def _install_late():
    if state.depth:
        replacements.install()


def _leave_at_exit():
    # torch's per-thread state of the main thread is destroyed after Python exits, and must not
    # refer to a Python object then.
    if is_active():
        with contextlib.suppress(AsCudaError):
            disable()


def _refuse_beside_cuda():
    built = torch.version.cuda or torch.version.hip
    if built and torch.cuda.is_available():
        raise AsCudaError(
            f"this torch is built for CUDA or ROCm ({built}) and sees {torch.cuda.device_count()} device(s), "
            'so "cuda" would mean two devices.\n'
            "Likely causes: a program that should use those GPUs; a torch with CUDA on a machine for musa\n"
            "Fix: unset TORCH_MUSA_AS_CUDA; to use musa, hide the others with CUDA_VISIBLE_DEVICES=, or call "
            "musa_as_cuda.enable(over_cuda=True)"
        )
