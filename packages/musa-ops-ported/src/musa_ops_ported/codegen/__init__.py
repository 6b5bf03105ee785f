# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Generates C++ from `ops.yaml`: the forms of each operator and their registration."""
