# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.distributed.fsdp`: the gradient scaler for FSDP, with "musa" as its default device."""

import torch.distributed as dist
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler as _OfTorch


class ShardedGradScaler(_OfTorch):
    """torch's class with "musa" as its default device instead of "cuda".

    Args:
        device (str): the device type.
        init_scale (float): the first scale.
        backoff_factor (float): scale factor after a step with an infinite or NaN gradient.
        growth_factor (float): scale factor after `growth_interval` steps with finite gradients.
        growth_interval (int): number of steps between two growths.
        enabled (bool): if False, every method is a no-op.
        process_group (torch.distributed.ProcessGroup, optional): the ranks that share a scale; default: all
            ranks.
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
