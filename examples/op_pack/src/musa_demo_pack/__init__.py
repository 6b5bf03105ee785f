# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A third-party op pack. Loaded by `import torch`, so this module imports nothing itself."""
