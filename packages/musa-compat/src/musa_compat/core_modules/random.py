# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.random`."""

from ..forwarding import forward, same

__getattr__, __dir__ = forward(
    "torch_musa.core.random",
    same(
        "fork_rng",
        "get_rng_state",
        "get_rng_state_all",
        "initial_seed",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "set_rng_state",
        "set_rng_state_all",
    ),
)
