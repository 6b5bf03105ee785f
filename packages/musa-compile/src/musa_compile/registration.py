# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's import hook: registers with torch's compiler when the compiler is first imported.

Dynamo does not notify a device's module when it starts, so the pack hooks the import of the modules that
hold the registries. This module does not import the compiler.
"""

import warnings

import torch

import musa_runtime
from musa_runtime.import_actions import after_import


def musa_import(musa):
    """Called by the loader of `torch_musa` at the end of `import torch`."""
    # Hooks the package, whose `__init__` runs last: a module inside it would still be part of an
    # import cycle.
    after_import("torch._dynamo", _register_dynamo)
    after_import("torch._inductor.compile_fx", _register_inductor)
    # Imported by torch._inductor.package and torch._inductor.aoti_load_package before they load a
    # model.
    after_import("torch.export.pt2_archive._package", _register_model_runner)


def _warns(register):
    """The function with a warning in place of its exceptions.

    It runs within the import of a module of torch's, which must not fail: programs that do not compile import
    Dynamo too, for their optimizers.
    """

    def action():
        try:
            register()
        except Exception as error:  # noqa: BLE001 - reported, whatever another torch lacks
            warnings.warn(
                f"musa_compile could not register with torch {torch.__version__}: "
                f"{type(error).__name__}: {error}. torch.compile and AOTInductor do not work on musa.\n"
                "Fix: python -m torch_musa doctor",
                RuntimeWarning,
                stacklevel=2,
            )

    return action


@_warns
def _register_dynamo():
    from . import device_interface, fake_layouts

    device_interface.register()
    fake_layouts.register()


@_warns
def _register_inductor():
    if _runtime_is_loaded():  # otherwise there are no musa tensors to compile
        from . import generators

        generators.register()


@_warns
def _register_model_runner():
    if _runtime_is_loaded():  # otherwise no device can run a musa model, but CPU models must load
        from . import installed

        installed.load_library()


def _runtime_is_loaded():
    # The pack's libraries link to the runtime's. Does not initialize a device.
    return musa_runtime.load().status == "loaded"
