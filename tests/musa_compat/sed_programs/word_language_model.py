# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A recurrent language model with truncated back-propagation."""

import math

import torch
from torch import nn

TOKENS, WIDTH, STEPS = 12, 16, 5


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(TOKENS, WIDTH)
        self.rnn = nn.LSTM(WIDTH, WIDTH, 2, dropout=0.1)
        self.decoder = nn.Linear(WIDTH, TOKENS)
        self.decoder.weight = self.encoder.weight

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.encoder(tokens), hidden)
        return nn.functional.log_softmax(self.decoder(output).view(-1, TOKENS), dim=1), hidden

    def start(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(2, batch, WIDTH), weight.new_zeros(2, batch, WIDTH)


def batchify(data, batch, device):
    count = data.size(0) // batch
    return data.narrow(0, 0, count * batch).view(batch, -1).t().contiguous().to(device)


torch.manual_seed(0)
if torch.cuda.is_available():
    torch.cuda.manual_seed(0)
device = torch.device("cuda")
data = batchify(torch.arange(400) % TOKENS, 8, device)
model = Model().cuda()
criterion = nn.NLLLoss()
hidden = model.start(8)
rate, losses = 5.0, []
for _epoch in range(3):
    total = 0.0
    for row in range(0, data.size(0) - 1, STEPS):
        length = min(STEPS, data.size(0) - 1 - row)
        inputs, targets = data[row : row + length], data[row + 1 : row + 1 + length].view(-1)
        model.zero_grad()
        hidden = tuple(state.detach() for state in hidden)
        output, hidden = model(inputs, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(parameter.grad, alpha=-rate)
        total += loss.item()
    losses.append(total)
assert losses[-1] < losses[0] and math.isfinite(math.exp(losses[-1] / 10))
model.rnn.flatten_parameters()
model.eval()
token, sentence = torch.randint(TOKENS, (1, 1), dtype=torch.long, device="cuda"), []
hidden = model.start(1)
with torch.no_grad():
    for _ in range(6):
        output, hidden = model(token, hidden)
        token.fill_(torch.multinomial(output.squeeze().div(1.0).exp().cpu(), 1)[0])
        sentence.append(token.item())
assert len(sentence) == 6
print("done")
