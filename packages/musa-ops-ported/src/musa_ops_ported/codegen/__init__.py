# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What `ops.yaml` says, as C++: the forms of each operator and their registration."""
