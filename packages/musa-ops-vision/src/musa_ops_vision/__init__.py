# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchvision's operators on musa devices. `import torch` imports this package, so it imports nothing."""
