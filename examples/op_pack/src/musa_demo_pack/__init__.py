# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An op pack of somebody else. `import torch` imports this package, so it imports nothing."""
