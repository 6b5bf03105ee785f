# Types of objects that the compiled module returns to programs. Its functions are internal.

from typing import Any, final
from uuid import UUID

@final
class _MusaDeviceProperties:
    name: str
    gcnArchName: str  # the name, as in a CUDA build of torch
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    is_integrated: bool
    is_multi_gpu_board: bool
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    regs_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int
    regs_per_block: int
    multi_gpu_board_group_id: int
    ecc_enabled: bool
    uuid: UUID | None  # None for SDKs that report none

class _MUSAAllocator:
    @property
    def name(self) -> str: ...

class _InterprocessEvent:
    def __init__(self, blocking: bool) -> None: ...
    @staticmethod
    def from_handle(device: int, handle: bytes) -> _InterprocessEvent: ...
    @property
    def device_index(self) -> int: ...
    @property
    def event_id(self) -> int: ...
    def record(self, stream_id: int, device_index: int) -> None: ...
    def wait(self, stream_id: int, device_index: int) -> None: ...
    def query(self) -> bool: ...
    def synchronize(self) -> None: ...
    def ipc_handle(self) -> bytes: ...

def __getattr__(name: str) -> Any: ...
