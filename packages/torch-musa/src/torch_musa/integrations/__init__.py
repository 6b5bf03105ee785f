# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Adapters that make other packages use musa. Each requires its package; torch_musa imports none of them."""
