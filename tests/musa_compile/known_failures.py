# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The tests of this folder that are known to fail: a closed list. One that passes is a failure."""

from __future__ import annotations

from dataclasses import dataclass

from torch._dynamo.exc import Unsupported


@dataclass(frozen=True)
class Cause:
    """The reason why a test fails, and the exception that it raises."""

    reason: str
    raises: type[BaseException]


_PROPERTIES = Cause(
    "x.musa() and x.is_musa are made by torch.utils.generate_methods_for_privateuse1_backend, for any device "
    "of that kind, and Dynamo cannot trace the properties; x.to('musa') and x.device.type are traced",
    Unsupported,
)
_RECOMPUTED_EAGERLY = Cause(
    "torch's backend 'eager' draws other numbers when a checkpointed region is recomputed, on the CPU too",
    AssertionError,
)
_DEVICE_OF_A_CONTEXT = Cause(
    "AOTAutograd's graph holds neither the change of the device nor its index, so that it allocates on the "
    "current device of the caller; torch.accelerator.device_index, which is torch's own, shows it too",
    AssertionError,
)
_BACKENDS = ("eager", "aot_eager", "inductor")

KNOWN_FAILURES = {
    **{f"test_generated_properties_of_tensors[{backend}]": _PROPERTIES for backend in _BACKENDS},
    **{
        f"test_the_current_device_is_chosen[{backend}-{context}]": _DEVICE_OF_A_CONTEXT
        for backend in ("aot_eager", "inductor")
        for context in ("torch.musa.device", "torch.accelerator.device_index")
    },
    "test_is_compile_supported_says_so": Cause(
        "torch._dynamo.utils.is_compile_supported has a closed list of device types; torch calls it in "
        "torch.utils._content_store alone",
        AssertionError,
    ),
    "test_recomputed_regions_draw_the_numbers_of_the_forward[eager]": _RECOMPUTED_EAGERLY,
    "test_a_recomputed_layer_has_the_gradient_of_the_kept_numbers[eager]": _RECOMPUTED_EAGERLY,
    "test_compiled_as_eager_on_the_cpu[attention_of_products]": Cause(
        "Inductor's C++ fusion raises an IndexError for the backward pass of this function, on the CPU too",
        IndexError,
    ),
}
