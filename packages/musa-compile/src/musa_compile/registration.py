# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The import hook of the pack: registers with torch's compiler when a program first imports that.

torch asks a device's module for nothing when Dynamo starts, so the pack waits for the import of the modules
that hold the registries. This module imports nothing of the compiler.
"""

import warnings

import torch

import musa_runtime
from musa_runtime.import_actions import after_import


def musa_import(musa):
    """What the loader of `torch_musa` calls at the end of `import torch`."""
    # The package, so that its `__init__` is done: a module within it is still part of a cycle of imports.
    after_import("torch._dynamo", _register_dynamo)
    after_import("torch._inductor.compile_fx", _register_inductor)
    # torch._inductor.package and torch._inductor.aoti_load_package import it before they load a model.
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
    if _runtime_is_loaded():  # else there are no tensors on musa to compile
        from . import generators

        generators.register()


@_warns
def _register_model_runner():
    if _runtime_is_loaded():  # else there is no device to run a model on, and models of the CPU load
        from . import installed

        installed.load_library()


def _runtime_is_loaded():
    # The pack's libraries are linked against the runtime's. Asks for no device.
    return musa_runtime.load().status == "loaded"
