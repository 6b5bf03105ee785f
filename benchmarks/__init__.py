# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measurements of the musa device beside torch's CPU device: ``python -m benchmarks``."""
