# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch's CPU kernels in device memory that the host can address: the provider `host`.

`torch.musa` loads the pack at the first use of the device; importing this module has no effect.
"""
