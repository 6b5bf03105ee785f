# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures the musa device against torch's CPU device: ``python -m benchmarks``."""
