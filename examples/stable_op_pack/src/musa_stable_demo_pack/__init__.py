# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An op pack over torch's stable ABI. Loaded by `import torch`, so this module imports nothing itself."""
