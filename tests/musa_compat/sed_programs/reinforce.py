# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A policy gradient on a small environment."""

from collections import deque

import torch
from torch import nn, optim
from torch.distributions import Categorical

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(dim=-1)).to(device)
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
returns = deque(maxlen=10)
for _ in range(3):
    state, logs, rewards = torch.zeros(4, device=device), [], []
    for step in range(5):
        choice = Categorical(policy(state.unsqueeze(0)))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        rewards.append(1.0 if action.item() == step % 2 else 0.0)
        state = torch.full((4,), float(step), device=device)
    total, discounted = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.99 * total
        discounted.insert(0, total)
    weights = torch.tensor(discounted, device="cuda")
    loss = (-torch.cat(logs) * (weights - weights.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    returns.append(sum(rewards))
assert len(returns) == 3 and next(policy.parameters()).is_cuda
print("done")
