# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every error this project raises by name. A failing SDK call is `torch.AcceleratorError`, exhausted memory
`torch.OutOfMemoryError`; what is here is all that goes wrong before, around and beside the SDK."""


class MusaError(RuntimeError):
    """Base of the named errors of torch_musa.

    Attributes:
        command (str or None): the shell command that repairs the cause, if there is a single one. The text
            names it after `Fix:`, and the doctor prints it.
    """

    def __init__(self, text, command=None):
        super().__init__(text)
        self.command = command


class SdkNotFoundError(MusaError):
    """None of the places that are searched holds a MUSA SDK."""


class TorchVersionError(MusaError):
    """The installed torch is of another minor than the one the libraries were compiled for."""


class BackendConflictError(MusaError):
    """Another backend has taken PrivateUse1, the one device slot torch lends to out-of-tree backends."""


class AbiMismatchError(MusaError):
    """The Python files and the compiled library of musa_runtime come from different builds."""


class LibraryLoadError(MusaError):
    """A shared library is missing or the dynamic linker refused it."""


class NoDeviceError(MusaError):
    """The SDK is there, but shows no device."""


class InvalidDeviceError(MusaError, ValueError):
    """Not a musa device, or an index beyond the visible devices."""


class ForkError(MusaError):
    """The device was used in a process forked after the device had been initialised."""


class SharingError(MusaError):
    """Device memory cannot be shared with another process, or what was shared cannot be opened."""


class ProducerExitedError(SharingError):
    """The process that shared device memory ended before this one had received it."""


class UnknownOpError(MusaError, ValueError):
    """No operator of that name is known to the op registry."""


class UnknownProviderError(MusaError, ValueError):
    """An op was pinned to a provider that no loaded pack offers."""


class PackError(MusaError):
    """An op pack could not be loaded."""


class ContractVersionError(PackError):
    """An op pack declares another version of the plugin contract, or none."""


class AllocatorInUseError(MusaError):
    """The allocator was to be changed after it had given memory away."""


class DeferredCallError(MusaError):
    """A call queued before the device was initialised failed when it was carried out."""


class SdkCallError(MusaError):
    """An SDK call that the program made by itself failed; `code` is what it returned."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code

    def __reduce__(self):
        return type(self), (self.code, str(self))


class TelemetryUnavailableError(MusaError):
    """The management library cannot be asked: it, its Python package or the figure is not there."""
