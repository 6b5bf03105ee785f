# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Activation, once, on import: load the runtime, rename PrivateUse1, register `torch.musa`. Never raises.

What went wrong is kept in `failure`, and in `musa_runtime.load().error`, for the first use of the device and
for the doctor.
"""

import sys
import types
import warnings

import torch

failure = None


def _activate():
    import musa_runtime

    result = musa_runtime.load()
    if result.status == "absent":
        # Without hooks, a renamed PrivateUse1 would be an accelerator that cannot answer, and pinned memory
        # would break.
        _expose(register=False)
        return
    from musa_runtime import _compat

    _compat.rename_privateuse1()
    from musa_runtime import processes

    processes.register()
    _expose(register=True)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    from . import engine_threads

    engine_threads.register()


def _expose(register):
    from . import musa

    if register:
        torch._register_device_module("musa", musa)
    else:  # torch's function insists on a device that torch can parse
        torch.musa = musa
        sys.modules["torch.musa"] = musa
    # torch registers the module only, not what can be imported from below it.
    for name in (*musa.__all__, "_utils"):
        member = vars(musa).get(name)
        if isinstance(member, types.ModuleType):
            sys.modules[f"torch.musa.{name}"] = member


try:
    _activate()
except Exception as error:  # noqa: BLE001 - nothing may break `import torch`
    failure = error
    warnings.warn(
        f"torch_musa could not be activated: {error!r}. To see more: python -m torch_musa doctor",
        stacklevel=1,
    )
