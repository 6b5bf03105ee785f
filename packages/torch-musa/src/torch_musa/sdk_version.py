# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.version.musa`, by which programs recognise a MUSA build: a str as `torch.version.cuda`, or None."""

import torch.version


def register(loaded):
    """Adds `torch.version.musa`. An attribute that exists stays.

    Args:
        loaded (musa_runtime._load.LoadResult): what became of loading the runtime. The version is that of its
            SDK, as "4.3"; None if the runtime could not be loaded, so that programs do not choose musa.
    """
    if not hasattr(torch.version, "musa"):
        torch.version.musa = None if loaded.error is not None else _of_sdk(loaded)


def _of_sdk(loaded):
    text = loaded.sdk.version  # of the SDK's version.json, without a call of the library
    if text is None:
        number = loaded.extension.runtime_version()
        return f"{number // 10000}.{number // 100 % 100}"
    return ".".join(text.split(".")[:2])
