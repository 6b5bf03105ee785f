# Types of `torch.backends.mudnn`: the pack's module, or the placeholder in torch_musa/backends.py.

from contextlib import AbstractContextManager

enabled: bool
benchmark: bool
deterministic: bool
allow_tf32: bool

def version() -> int | None: ...
def is_available() -> bool: ...
def set_flags(
    _allow_tf32: bool | None = None,
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _deterministic: bool | None = None,
) -> tuple[bool, ...]: ...
def flags(
    allow_tf32: bool | None = None,
    enabled: bool | None = None,
    benchmark: bool | None = None,
    deterministic: bool | None = None,
) -> AbstractContextManager[None]: ...
