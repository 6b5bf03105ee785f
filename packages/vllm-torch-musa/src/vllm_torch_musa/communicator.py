# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Collectives between the ranks of a model."""

from __future__ import annotations

import torch
from vllm.distributed.device_communicators.xpu_communicator import XpuCommunicator


class MusaCommunicator(XpuCommunicator):
    """Collectives of torch.distributed with the backend `mccl`.

    The base class calls torch.distributed alone, and vLLM captures graphs with it or with CUDA's
    communicator only.
    """

    def broadcast(self, input_: torch.Tensor, src: int = 0) -> torch.Tensor:
        """Broadcasts from the rank `src` of the group, in place. Returns `input_`."""
        torch.distributed.broadcast(input_, src=self.ranks[src], group=self.device_group)
        return input_
