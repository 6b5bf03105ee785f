# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Seeds, states and generators of the device."""

import torch

torch.cuda.manual_seed(5)
first = torch.randn(4, device="cuda")
torch.cuda.manual_seed_all(5)
assert torch.equal(first, torch.randn(4, device="cuda")) and torch.cuda.initial_seed() == 5
state = torch.cuda.get_rng_state()
second = torch.rand(4, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(second, torch.rand(4, device="cuda"))
states = torch.cuda.get_rng_state_all()
torch.cuda.set_rng_state_all(states)
assert len(states) == torch.cuda.device_count()
with torch.random.fork_rng(devices=[0], device_type="cuda"):
    torch.cuda.manual_seed(9)
    torch.rand(4, device="cuda")
assert torch.equal(torch.cuda.get_rng_state(), states[0])
generator = torch.Generator(device="cuda")
generator.manual_seed(3)
third = torch.randn(4, generator=generator, device="cuda")
assert torch.equal(third, torch.randn(4, generator=torch.Generator("cuda").manual_seed(3), device="cuda"))
assert torch.cuda.default_generators[0].device == torch.device("cuda:0")
torch.cuda.seed()
torch.cuda.seed_all()
torch.manual_seed(0)
torch.use_deterministic_algorithms(True, warn_only=True)
permutation = torch.randperm(10, device="cuda")
assert sorted(permutation.tolist()) == list(range(10))
print("done")
