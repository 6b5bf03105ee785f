# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The import hook of the pack. It imports torch in functions only, and does not use the device."""


def musa_import(musa):
    """Lets programs check for the pack before the device is used."""
    musa.has_demo = True
