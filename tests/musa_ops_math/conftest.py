# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime suite's fixtures and leak check."""

from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too
