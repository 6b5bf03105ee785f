# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Triton backend for the target "musa", for tests: kernels stop at Triton's own IR (TTIR), and a launch
interprets that on memory that the host can address.

Triton finds it by the entry point of the distribution beside this package.
"""
