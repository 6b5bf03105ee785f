# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Streams, events, timing, and memory that several streams use."""

import ctypes

import torch

cuda = torch.device("cuda")
s = torch.cuda.Stream()
A = torch.empty((64, 64), device=cuda).normal_(0.0, 1.0)
s.wait_stream(torch.cuda.default_stream(cuda))
with torch.cuda.stream(s):
    B = torch.sum(A)
A.record_stream(s)
torch.cuda.current_stream().wait_stream(s)
assert torch.isfinite(B)

start_event = torch.cuda.Event(enable_timing=True)
end_event = torch.cuda.Event(enable_timing=True)
start_event.record()
C = A @ A
end_event.record()
torch.cuda.synchronize()
assert start_event.elapsed_time(end_event) >= 0 and end_event.query()

low, high = torch.cuda.Stream(priority=0), torch.cuda.Stream(priority=-1)
assert high.priority <= low.priority and low != high
done = torch.cuda.Event()
with torch.cuda.stream(low):
    D = A + 1
    done.record()
high.wait_event(done)
with torch.cuda.stream(high):
    E = D * 2
high.synchronize()
torch.testing.assert_close(E.cpu(), (A.cpu() + 1) * 2)
raw = torch.cuda.current_stream().cuda_stream
assert (
    isinstance(raw, int)
    and ctypes.c_void_p(high.cuda_stream).value == torch.cuda.ExternalStream(high.cuda_stream).cuda_stream
)
with torch.cuda.device(0):
    assert torch.cuda.current_stream().device == torch.device("cuda:0")
torch.cuda.set_stream(s)
assert torch.cuda.current_stream() == s and torch.accelerator.current_stream().stream_id == s.stream_id
torch.cuda.set_stream(torch.cuda.default_stream())
assert isinstance(torch.cuda.Stream(), torch.Stream)
print("done")
