# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.compile` on musa. There is nothing to import by hand: the pack registers with torch's compiler when
that is first imported. docs/design/compile.md names torch's registration functions that it calls.
"""
