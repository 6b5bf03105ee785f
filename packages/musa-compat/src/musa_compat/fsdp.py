# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.distributed.fsdp`: the scaler of gradients for FSDP, with the device filled in."""

import torch.distributed as dist
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler as _OfTorch


class ShardedGradScaler(_OfTorch):
    """torch's class for the device "musa". torch's own is for "cuda" unless `device="musa"` is passed.

    Args:
        device (str): the device type.
        init_scale (float): the first scale.
        backoff_factor (float): factor of the scale after a step with an infinite or undefined gradient.
        growth_factor (float): factor of the scale after `growth_interval` steps with finite gradients.
        growth_interval (int): steps between two growths.
        enabled (bool): False makes every method pass on what it gets.
        process_group (torch.distributed.ProcessGroup, optional): the ranks that share a scale; all of them
            unless given.
    """

    def __init__(
        self,
        device="musa",
        init_scale=2.0**16,
        backoff_factor=0.5,
        growth_factor=2.0,
        growth_interval=2000,
        enabled=True,
        process_group=None,
    ):
        super().__init__(
            device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
            process_group=dist.group.WORLD if process_group is None else process_group,
        )


__all__ = ["ShardedGradScaler"]
