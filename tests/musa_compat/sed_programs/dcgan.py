# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Two networks against each other: transposed convolutions, batch norm, two optimizers."""

import random

import torch
import torch.backends.cudnn as cudnn
from torch import nn, optim

cudnn.benchmark = True
random.seed(3)
torch.manual_seed(3)
torch.cuda.manual_seed_all(3)
ngpu = 1
device = torch.device("cuda:0" if torch.cuda.is_available() and ngpu > 0 else "cpu")


def initialize(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


generator = nn.Sequential(
    nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(True),
    nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False),
    nn.Tanh(),
).to(device)
discriminator = nn.Sequential(
    nn.Conv2d(3, 8, 4, 2, 1, bias=False),
    nn.BatchNorm2d(8),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(8, 1, 4, 1, 0, bias=False),
    nn.Sigmoid(),
).to(device)
generator.apply(initialize)
discriminator.apply(initialize)
criterion = nn.BCELoss()
optimizers = [
    optim.Adam(net.parameters(), lr=0.0002, betas=(0.5, 0.999)) for net in (discriminator, generator)
]
fixed = torch.randn(4, 8, 1, 1, device=device)
for _ in range(3):
    real = torch.rand(4, 3, 8, 8).cuda(non_blocking=True)
    label = torch.full((4,), 1.0, dtype=real.dtype, device=device)
    discriminator.zero_grad()
    criterion(discriminator(real).view(-1), label).backward()
    fake = generator(torch.randn(4, 8, 1, 1, device=device))
    label.fill_(0.0)
    criterion(discriminator(fake.detach()).view(-1), label).backward()
    optimizers[0].step()
    generator.zero_grad()
    label.fill_(1.0)
    loss = criterion(discriminator(fake).view(-1), label)
    loss.backward()
    optimizers[1].step()
with torch.no_grad():
    images = generator(fixed).detach().cpu()
assert images.shape == (4, 3, 8, 8) and images.isfinite().all() and loss.item() > 0
print("done")
