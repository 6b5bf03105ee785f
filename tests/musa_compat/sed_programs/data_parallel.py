# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""nn.DataParallel, which old programs still use."""

import torch
from torch import nn

model = nn.Linear(5, 2)
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
model.to(torch.device("cuda:0"))
output = model(torch.randn(6, 5).to("cuda:0"))
assert output.shape == (6, 2)
print("done")
