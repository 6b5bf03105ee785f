# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Long runs of random work, during which no resource may grow: `python -m tests.soak --minutes 30`."""
