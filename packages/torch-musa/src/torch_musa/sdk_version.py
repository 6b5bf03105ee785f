# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.version.musa`, which identifies MUSA builds: a str like `torch.version.cuda`, or None."""

import torch.version


def register(loaded):
    """Adds `torch.version.musa`, unless the attribute exists.

    Args:
        loaded (musa_runtime._load.LoadResult): the result of loading the runtime. The version is that of its
            SDK, such as "4.3", or None if the runtime could not be loaded, to keep programs from using musa.
    """
    if not hasattr(torch.version, "musa"):
        torch.version.musa = None if loaded.error is not None else _of_sdk(loaded)


def _of_sdk(loaded):
    text = loaded.sdk.version  # from the SDK's version.json, without calling the library
    if text is None:
        number = loaded.extension.runtime_version()
        return f"{number // 10000}.{number // 100 % 100}"
    return ".".join(text.split(".")[:2])
