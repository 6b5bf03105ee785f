# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A loader with pinned memory, and a stream that copies the next batch beside the computation."""

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.full((3, 8, 8), float(index)), index


class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.cuda.Stream()
        self.mean = torch.tensor([1.0, 2.0, 3.0]).cuda().view(1, 3, 1, 1)
        self.preload()

    def preload(self):
        try:
            self.inputs, self.target = next(self.loader)
        except StopIteration:
            self.inputs = None
            return
        with torch.cuda.stream(self.stream):
            self.inputs = self.inputs.cuda(non_blocking=True).float().sub_(self.mean)
            self.target = self.target.cuda(non_blocking=True)

    def __iter__(self):
        while True:
            torch.cuda.current_stream().wait_stream(self.stream)
            inputs, target = self.inputs, self.target
            if inputs is None:
                return
            inputs.record_stream(torch.cuda.current_stream())
            target.record_stream(torch.cuda.current_stream())
            self.preload()
            yield inputs, target


if __name__ == "__main__":
    loader = DataLoader(Numbers(), batch_size=8, pin_memory=True)
    for inputs, _ in loader:
        assert inputs.is_pinned() and not inputs.is_cuda
    seen = []
    for inputs, target in Prefetcher(loader):
        assert inputs.is_cuda and inputs[0, 1, 0, 0].item() == target[0].item() - 2
        seen += target.tolist()
    assert seen == list(range(24))
    workers = DataLoader(Numbers(), batch_size=8, num_workers=1, pin_memory=True)
    assert sum(int(target.to("cuda", non_blocking=True).sum()) for _, target in workers) == sum(range(24))
    host = torch.empty(16, pin_memory=True)
    device = torch.randn(16, device="cuda")
    host.copy_(device, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    assert torch.equal(host, device.cpu())
    print("done")
