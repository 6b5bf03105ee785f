# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
