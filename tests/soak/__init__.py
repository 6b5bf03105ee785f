# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Long runs of random work, after which nothing may have grown: `python -m tests.soak --minutes 30`."""
