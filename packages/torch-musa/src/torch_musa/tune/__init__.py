# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa tune`: measures the providers of operators and writes the order of each to a file."""
