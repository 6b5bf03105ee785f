# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules that make other packages use musa. Each needs its package; torch_musa imports none of them."""
