# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.compile` on musa. No import is needed: the pack registers with torch's compiler when the compiler is
first imported. docs/design/compile.md lists the registration functions of torch that it calls.
"""
