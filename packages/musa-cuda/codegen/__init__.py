# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes entry points, headers for nvcc and the coverage report from the SDK's own headers."""
