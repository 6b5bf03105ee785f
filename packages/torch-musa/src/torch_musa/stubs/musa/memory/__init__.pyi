from musa_runtime.memory import *
from musa_runtime.memory import (
    _allocation_traceback as _allocation_traceback,
    _attach_out_of_memory_observer as _attach_out_of_memory_observer,
    _dump_snapshot as _dump_snapshot,
    _get_memory_metadata as _get_memory_metadata,
    _record_memory_history as _record_memory_history,
    _save_memory_usage as _save_memory_usage,
    _save_segment_usage as _save_segment_usage,
    _set_allocator_settings as _set_allocator_settings,
    _set_memory_metadata as _set_memory_metadata,
    _snapshot as _snapshot,
)
