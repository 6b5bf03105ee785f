# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime's fixtures and leak check, and torchvision with its C++ library if it is installed."""

from __future__ import annotations

import pytest

from tests.harness import skips
from tests.musa_ops_vision import stand_ins
from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too


@pytest.fixture
def ops(musa):
    """torch.ops.torchvision, with the pack loaded."""
    import torch

    return torch.ops.torchvision


@pytest.fixture(scope="session")
def stand_in_folder(tmp_path_factory):
    """The folder with stand-ins for the CUDA libraries that torchvision's library needs."""
    library = stand_ins.library()
    if library is None:
        skips.skip_permanently("torchvision")
    folder = tmp_path_factory.mktemp("stand-ins")
    stand_ins.make(library, folder)
    return folder


@pytest.fixture(scope="session")
def torchvision(stand_in_folder):
    """The module torchvision, whose CPU kernels are loaded."""
    stand_ins.load(stand_in_folder)
    import torchvision

    assert torchvision.extension._has_ops()
    return torchvision
