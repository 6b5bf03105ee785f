# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""CUDA sources as MUSA sources: one engine, rules in files, a command line (`musa-port`)."""
