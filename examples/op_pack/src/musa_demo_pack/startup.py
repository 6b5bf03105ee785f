# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's import hook. It imports torch only inside functions, and does not use the device."""


def musa_import(musa):
    """Lets programs check for the pack before the device is used."""
    musa.has_demo = True
