# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes the replacements: `make(name, original)` returns the replacement of an attribute of torch.

Functions of `torch.musa` expect MUSA devices, so they run with torch's function modes suspended.
"""

import contextlib
import functools
import re
import threading

import torch

from . import state, translation
from .mode import AsCuda, is_active

_MUSA_NAMES = {"CUDAGraph": "MUSAGraph"}
_Suspended = torch._C.DisableTorchFunction
_local = threading.local()


def _call(target, args, kwargs):
    with _Suspended():
        return target(*map(translation.nested, args), **translation.nested(kwargs))


def _forward(target):
    """Returns a function that translates devices in the arguments and the result of `target`."""

    @functools.wraps(target)
    def forwarded(*args, **kwargs):
        return translation.to_cuda(_call(target, args, kwargs))

    return forwarded


def _class_like(base, name, module):
    """Returns a class whose constructor translates devices; instances are instances of `base`."""

    class Meta(type(base)):
        def __call__(cls, *args, **kwargs):
            return _call(base, args, kwargs)

        def __instancecheck__(cls, instance):
            with _Suspended():
                return isinstance(instance, base)

        def __subclasscheck__(cls, subclass):
            return issubclass(subclass, base)

    return Meta(name, (base,), {"__doc__": base.__doc__, "__module__": module})


def function(name, original):
    return _forward(getattr(torch.musa, name))


def class_(name, original):
    return _class_like(getattr(torch.musa, _MUSA_NAMES.get(name, name)), name, "torch.cuda")


def of_torch(name, original):
    return _class_like(original, name, "torch")


def tensor_type(name, original):
    # Tensor.type(T) reads the class name in C, and must be able to parse it.
    return _class_like(getattr(torch.musa, name), f"torch.musa.{name}", "torch.musa")


def value(name, original):
    return getattr(torch.musa, name)


def profiler(name, original):
    return _forward(getattr(torch.musa.profiler, name))


def marker(name, original):
    return _forward(getattr(torch.musa.mttx, name))


def comm(name, original):
    return _forward(getattr(torch.musa.comm, name))


def mccl_version(name, original):
    return lambda: torch.musa.mccl.version()


def initialized(name, original):
    """Returns the current state. While the switch is on, `torch.cuda._initialized` follows it."""
    from musa_runtime import initialization

    if not _follows_initialization:
        initialization.on_change(_follow_initialization)
        _follows_initialization.append(True)
    return torch.musa.is_initialized()


_follows_initialization = []


def _follow_initialization(is_initialized):
    if state.depth:
        torch.cuda._initialized = is_initialized


def set_default_tensor_type(name, original):
    @functools.wraps(original)
    def set_type(t):
        named = translation.tensor_type_to_musa(t if isinstance(t, str) else t.__name__)
        if not named.startswith("torch.musa."):
            torch.set_default_device(None)
            original(t)
            return
        with _Suspended():
            torch.set_default_dtype(getattr(torch.musa, named.rpartition(".")[2]).dtype)
            torch.set_default_device("musa")

    return set_type


def default_device(name, original):
    # Not suspended, because both functions inspect the active modes.
    @functools.wraps(original)
    def translated(*args):
        return translation.to_cuda(original(*map(translation.to_musa, args)))

    return translated


def autocast(name, original):
    @functools.wraps(original)
    def initialize(self, device_type, *args, **kwargs):
        original(self, translation.to_musa(device_type), *args, **kwargs)

    return initialize


def autocast_setting(name, original):
    """Without a device type, `is_autocast_enabled()` means CUDA."""

    @functools.wraps(original)
    def setting(*args, **kwargs):
        if name == "is_autocast_enabled" and not args and not kwargs:
            args = ("cuda",)
        return _call(original, args, kwargs)

    return setting


def profiler_activities(name, original):
    activity = torch.profiler.ProfilerActivity

    @functools.wraps(original)
    def initialize(self, *, activities=None, **options):
        if activities is not None:
            activities = [activity.PrivateUse1 if each == activity.CUDA else each for each in activities]
        original(self, activities=activities, **options)

    return initialize


def profiler_device(name, original):
    @functools.wraps(original)
    def initialize(self, enabled=True, *, use_cuda=False, use_device=None, **options):
        device = "cuda" if use_cuda else use_device
        original(self, enabled, use_device=translation.to_musa(device), **options)

    return initialize


def storage(name, original):
    @functools.wraps(original)
    def cuda(self, device=None, non_blocking=False):
        return self.musa(translation.to_musa(device), non_blocking)

    return cuda


def _with_mode(target):
    """Returns `target` wrapped to run with the mode on if it is suspended."""

    @functools.wraps(target)
    def run(*args, **kwargs):
        if is_active() or getattr(_local, "is_without_mode", False):
            return target(*args, **kwargs)
        with AsCuda():
            return target(*args, **kwargs)

    return run


def engine(name, original):
    return _with_mode(original)


def saved_tensors_hooks(name, original):
    @functools.wraps(original)
    def initialize(self, pack_hook, unpack_hook):
        original(self, _with_mode(pack_hook), _with_mode(unpack_hook))

    return initialize


def wrapper_subclass(name, original):
    @functools.wraps(original)
    def make(*args, **kwargs):
        return original(*map(translation.to_musa, args), **translation.nested(kwargs))

    return staticmethod(make)


def not_acceptable(name, original):
    return lambda tensor: False


def _backend(value):
    """Replaces `"nccl"` with `"mccl"`, also in lists such as `"cpu:gloo,cuda:nccl"`."""
    if not isinstance(value, str):
        return value
    return re.sub(r"\bcuda\b", "musa", re.sub(r"\bnccl\b", "mccl", value.lower()))


def process_group(name, original):
    # The backend is the first argument of init_process_group and the third of new_group.
    position = 0 if name == "init_process_group" else 2

    @functools.wraps(original)
    def start(*args, **kwargs):
        if "backend" in kwargs:
            kwargs["backend"] = _backend(kwargs["backend"])
        args = [_backend(value) if place == position else value for place, value in enumerate(args)]
        return _call(original, args, kwargs)

    return start


def get_backend(name, original):
    @functools.wraps(original)
    def backend(group=None):
        return original(group).replace("mccl", "nccl")

    return backend


def is_nccl_available(name, original):
    return lambda: hasattr(torch.distributed.Backend, "MCCL")


def compilation_env(name, original):
    """The context in which `flex_attention` runs without `torch.compile`: without the mode.

    `score_mod` runs without it too. Other modes stay: one of torch makes `bias[head]` in it an operator.
    """
    from musa_runtime.flex_attention import register_autocast

    register_autocast()

    @functools.wraps(original)
    @contextlib.contextmanager
    def without_mode():
        modes = torch.overrides._get_current_function_mode_stack()
        _exchange(modes, others := [each for each in modes if not isinstance(each, AsCuda)])
        before = getattr(_local, "is_without_mode", False)
        _local.is_without_mode = True  # for the derivative of score_mod
        try:
            with original() as backend:
                yield backend
        finally:
            _local.is_without_mode = before
            _exchange(others, modes)

    return without_mode


def _exchange(modes, others):
    """Leaves the active modes of the thread, and enters the others."""
    for _ in modes:
        torch.overrides._pop_mode()
    for mode in others:
        torch.overrides._push_mode(mode)
