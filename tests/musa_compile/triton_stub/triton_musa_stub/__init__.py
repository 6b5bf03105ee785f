# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Triton backend for the target "musa", for tests: kernels are compiled to Triton's own IR (TTIR), and a
launch interprets it on memory that the host can address.

Triton finds the backend by the entry point of the distribution next to this package.
"""
