# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The named errors of this project. A failed SDK call raises `torch.AcceleratorError` and exhausted memory
`torch.OutOfMemoryError`; the errors here are for failures outside of SDK calls."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MusaError(RuntimeError):
    """Base of the named errors of torch_musa.

    Attributes:
        command (str or None): the shell command that repairs the cause, if there is a single one. The text
            names it after `Fix:`, and the doctor prints it.
    """

    def __init__(self, text: str, command: str | None = None) -> None:
        super().__init__(text)
        self.command = command


class SettingError(MusaError, ValueError):
    """An environment variable has an invalid value."""


class SdkNotFoundError(MusaError):
    """No MUSA SDK was found in the searched places."""


class TorchVersionError(MusaError):
    """The installed torch is of another minor than the one the libraries were compiled for."""


class BackendConflictError(MusaError):
    """Another backend has taken PrivateUse1, torch's only device type for out-of-tree backends."""


class AbiMismatchError(MusaError):
    """The Python files and the compiled library of musa_runtime come from different builds."""


class LibraryLoadError(MusaError):
    """A shared library is missing or the dynamic linker refused it."""


class NoDeviceError(MusaError):
    """The SDK reports no device."""


class InvalidDeviceError(MusaError, ValueError):
    """Not a musa device, or an index beyond the visible devices."""


class ForkError(MusaError):
    """The device was used in a process that was forked after the device was initialised."""


class SharingError(MusaError):
    """Device memory cannot be shared with another process, or shared memory cannot be opened."""


class ProducerExitedError(SharingError):
    """The process that shared device memory ended before this one had received it."""


class UnknownOpError(MusaError, ValueError):
    """The op registry has no operator of that name."""


class UnknownProviderError(MusaError, ValueError):
    """An op was pinned to a provider that no loaded pack offers."""


class PackError(MusaError):
    """An op pack could not be loaded."""


class ContractVersionError(PackError):
    """An op pack declares another version of the plugin contract, or none."""


class AllocatorInUseError(MusaError):
    """The allocator cannot be changed after it has allocated memory."""


class DeferredCallError(MusaError):
    """A call queued before the device was initialised failed when it ran."""


class SdkCallError(MusaError):
    """An SDK call made by the program failed; `code` is its result."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, str(self))


class TelemetryUnavailableError(MusaError):
    """The management library, its Python package or the requested figure is not available."""
