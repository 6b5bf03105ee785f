# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchvision's operators on musa devices. Loaded by `import torch`, so it imports nothing itself."""
