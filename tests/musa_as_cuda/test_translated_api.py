# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each part of torch that a CUDA program uses, with the switch on: it runs, and on musa."""

from __future__ import annotations

import copy
import gc
import io
import threading
import warnings

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("as_cuda")]

CUDA = torch.device("cuda", 0)
FACTORIES = {
    "ones": lambda **place: torch.ones(2, **place),
    "empty": lambda **place: torch.empty(2, 3, **place),
    "full": lambda **place: torch.full((2,), 7, **place),
    "arange": lambda **place: torch.arange(5, **place),
    "linspace": lambda **place: torch.linspace(0, 1, 4, **place),
    "eye": lambda **place: torch.eye(3, **place),
    "rand": lambda **place: torch.rand(4, **place),
    "randn": lambda **place: torch.randn(4, **place),
    "randint": lambda **place: torch.randint(9, (3,), **place),
    "randperm": lambda **place: torch.randperm(6, **place),
    "tensor": lambda **place: torch.tensor([1.0, 2.0], **place),
    "as_tensor": lambda **place: torch.as_tensor([1, 2], **place),
    "zeros_like": lambda **place: torch.zeros_like(torch.ones(2), **place),
    "new_zeros": lambda **place: torch.ones(1).new_zeros(2, **place),
    "new_tensor": lambda **place: torch.ones(1).new_tensor([3.0], **place),
    "sparse_coo_tensor": lambda **place: torch.sparse_coo_tensor([[0]], [1.0], (2,), **place),
    "Linear": lambda **place: nn.Linear(2, 3, **place).weight,
    "to, keyword": lambda **place: torch.ones(2).to(**place),
    "to, positional": lambda device: torch.ones(2).to(device, torch.float64),
    "cuda": lambda device: torch.ones(2).cuda(device),
}
DEVICES = ["cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:0")]


def is_on_musa(tensor: torch.Tensor, index: int = 0) -> bool:
    """Whether the memory is on musa, which the switch does not translate."""
    with torch._C.DisableTorchFunction():
        return tensor.device == torch.device("musa", index)


def seen(tensor: torch.Tensor) -> tuple[object, bool, str]:
    return tensor.device, tensor.is_cuda, tensor.device.type


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("name", FACTORIES)
def test_a_tensor_created_for_cuda_is_on_musa_and_reports_cuda(name, device):
    made = FACTORIES[name](device=device)
    assert is_on_musa(made)
    assert seen(made) == (CUDA, True, "cuda")


def test_tensors_on_the_host_stay_there():
    made = torch.ones(2)
    assert seen(made) == (torch.device("cpu"), False, "cpu")
    assert seen(torch.ones(2, device="cuda").cpu()) == (torch.device("cpu"), False, "cpu")
    assert "device" not in repr(made)


def test_the_second_device_and_numbers_for_devices():
    assert is_on_musa(torch.ones(2, device="cuda:1"), 1) and is_on_musa(torch.ones(2).cuda(1), 1)
    assert is_on_musa(torch.ones(2, device=1), 1) and is_on_musa(torch.ones(2).to(1), 1)
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert is_on_musa(torch.ones(2, device="cuda"), 1) and is_on_musa(torch.ones(2).cuda(), 1)
    with torch.cuda.device("cuda:1"), torch.cuda.device_of(torch.ones(1, device="cuda:0")):
        assert torch.cuda.current_device() == 0


def test_results_are_those_of_the_cpu():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2)), torch.randn(4, 5)
    expected = model(x)
    found = model.cuda()(x.cuda())
    assert all(is_on_musa(parameter) for parameter in model.parameters())
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-6)  # sums in another order


def test_a_program_compares_devices():
    x = torch.ones(2, device="cuda")
    assert x.device == torch.device("cuda:0") and str(x.device) == "cuda:0" and x.get_device() == 0
    assert torch.zeros(2, device=x.device).device == x.device
    assert repr(x) == "tensor([1., 1.], device='cuda:0')"


def test_what_programs_query_first_from_torch_cuda():
    assert torch.cuda.is_available() and torch.cuda.device_count() == torch.musa.device_count()
    assert torch.cuda.get_device_name(0) == torch.musa.get_device_name(0)
    assert torch.cuda.get_device_capability("cuda:0") == torch.musa.get_device_capability(0)
    assert torch.cuda.get_device_properties(torch.device("cuda:0")).total_memory > 0
    assert torch.cuda.is_bf16_supported() and torch.cuda.current_device() == 0
    assert torch.cuda.nccl.version() == torch.musa.mccl.version()
    torch.cuda.init()
    assert torch.cuda.is_initialized() and torch.cuda._initialized


def test_the_memory_that_torch_cuda_reports():
    gc.collect()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4 << 20
    assert torch.cuda.memory.memory_allocated() == torch.cuda.memory_allocated("cuda:0")
    del x
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
    assert "Allocated memory" in torch.cuda.memory_summary() and len(torch.cuda.mem_get_info()) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.autocast("cuda"),
        lambda: torch.autocast(device_type="cuda", dtype=torch.bfloat16),
        lambda: torch.amp.autocast("cuda", dtype=torch.float16),
        lambda: torch.cuda.amp.autocast(),
    ],
)
@pytest.mark.filterwarnings("ignore:.*torch.cuda.amp.*deprecated")
def test_autocast_for_cuda_computes_in_the_lower_precision(make):
    model, x = nn.Linear(4, 4).cuda(), torch.ones(2, 4, device="cuda")
    with make() as block:
        assert torch.is_autocast_enabled("cuda") and torch.is_autocast_enabled()
        assert model(x).dtype == torch.get_autocast_dtype("cuda") == block.fast_dtype
    assert model(x).dtype == torch.float32 and not torch.is_autocast_enabled("cuda")


@pytest.mark.parametrize("make", [lambda: torch.amp.GradScaler("cuda"), lambda: torch.cuda.amp.GradScaler()])
@pytest.mark.filterwarnings("ignore:.*torch.cuda.amp.*deprecated")
def test_a_gradient_scaler_skips_the_step_with_an_infinite_gradient(make):
    weight = nn.Parameter(torch.ones(2, device="cuda"))
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), make()
    assert scaler.is_enabled()
    for factor, expected in ((1.0, [0.0, 0.0]), (float("inf"), [0.0, 0.0])):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert weight.tolist() == expected
    assert scaler.get_scale() == 2.0**15


def test_custom_functions_see_cuda_forward_and_backward():
    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
        def forward(ctx, x):
            told.append((x.is_cuda, x.dtype))
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            told.append((gradient.is_cuda, torch.ones(1, device="cuda").is_cuda))
            return gradient * 2

    told = []
    x = torch.ones(2, device="cuda", requires_grad=True)
    with torch.autocast("cuda"):
        y = Doubled.apply(x)
    y.sum().backward()
    (gradient,) = torch.autograd.grad(Doubled.apply(x).sum(), x)
    assert told == [(True, torch.float16), (True, True), (True, torch.float32), (True, True)]
    assert x.grad.tolist() == gradient.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpointing_repeats_the_dropout_of_the_forward_pass(use_reentrant):
    def layer(value):
        masks.append(nn.functional.dropout(torch.ones(64, device="cuda"), 0.5))
        return value * masks[-1]

    masks = []
    x = torch.ones(64, device="cuda", requires_grad=True)
    checkpoint(layer, x, use_reentrant=use_reentrant).sum().backward()
    assert len(masks) == 2 and torch.equal(masks[0], masks[1]) and torch.equal(x.grad, masks[0])


def test_streams_and_events():
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.Stream(device=torch.device("cuda:0"), priority=-1)
    assert isinstance(stream, torch.cuda.Stream) and isinstance(first, torch.cuda.Event)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        first.record()
        x = torch.ones(8, device="cuda") * 3
        second.record(stream)
    x.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(second)
    torch.cuda.synchronize("cuda:0")
    assert first.elapsed_time(second) >= 0 and x.tolist() == [3.0] * 8


def test_a_graph_is_captured_and_replayed():
    x = torch.ones(4, device="cuda")
    y = x * 2
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    x.fill_(5)
    graph.replay()
    torch.cuda.synchronize()
    assert y.tolist() == [10.0] * 4


def test_generators_and_seeds():
    generator, same = (torch.Generator(device="cuda").manual_seed(3) for _ in range(2))
    assert isinstance(generator, torch.Generator) and isinstance(torch.Generator(), torch.Generator)
    drawn = torch.rand(4, generator=generator, device="cuda")
    assert torch.equal(drawn, torch.rand(4, generator=same, device="cuda"))
    for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all):
        seed(5)
        drawn = torch.rand(4, device="cuda")
        seed(5)
        assert torch.equal(drawn, torch.rand(4, device="cuda"))
    state = torch.cuda.get_rng_state()
    drawn = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(drawn, torch.rand(4, device="cuda"))
    with torch.random.fork_rng(devices=[0]):
        first = torch.rand(4, device="cuda")
    assert torch.equal(first, torch.rand(4, device="cuda"))


def test_types_from_before_devices():
    made = torch.cuda.FloatTensor([1, 2])
    assert is_on_musa(made) and made.type() == "torch.cuda.FloatTensor"
    assert isinstance(made, torch.cuda.FloatTensor) and not isinstance(made, torch.cuda.HalfTensor)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    assert torch.ones(1).type(torch.cuda.HalfTensor).type() == "torch.cuda.HalfTensor"
    assert torch.ones(1).type("torch.cuda.LongTensor").dtype == torch.int64


def test_default_devices():
    with torch.device("cuda"):
        assert is_on_musa(torch.zeros(1)) and is_on_musa(nn.Linear(1, 1).weight)
    torch.set_default_device("cuda")
    try:
        assert torch.get_default_device() == CUDA
        assert is_on_musa(torch.zeros(1)) and is_on_musa(nn.Linear(1, 1).weight)
    finally:
        torch.set_default_device(None)
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    try:
        assert is_on_musa(torch.zeros(1)) and torch.zeros(1).dtype == torch.float64
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert not torch.zeros(1).is_cuda and torch.zeros(1).dtype == torch.float32


@pytest.mark.parametrize(
    "location",
    [
        "cuda",
        "cuda:0",
        CUDA,
        {"cuda:1": "cuda:0", "musa:0": "cuda:0"},
        lambda storage, _: storage.cuda(0),
    ],
    ids=["type", "index", "device", "map", "function"],
)
def test_a_file_is_loaded_to_cuda(location):
    buffer = io.BytesIO()
    torch.save(nn.Linear(2, 2).cuda().state_dict(), buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, map_location=location)
    assert all(is_on_musa(tensor) for tensor in loaded.values())


def test_a_file_that_names_cuda_is_loaded_to_musa():
    changed = io.BytesIO(_with_location(b"cuda:0"))
    assert is_on_musa(torch.load(changed))
    changed.seek(0)
    assert not torch.load(changed, map_location="cpu").is_cuda


def _with_location(name: bytes) -> bytes:
    """A file of torch.save whose storage names a device, as written on a machine with CUDA."""
    from torch import serialization

    def tag(storage):
        return name.decode()

    serialization.register_package(0, tag, lambda storage, location: None)
    try:
        buffer = io.BytesIO()
        torch.save(torch.arange(4.0), buffer)
        return buffer.getvalue()
    finally:
        registry = serialization._package_registry
        registry[:] = [entry for entry in registry if entry[1] is not tag]


def test_data_loaders_pin_memory():
    loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=4, pin_memory=True)
    for (batch,) in loader:
        assert batch.is_pinned() and is_on_musa(batch.to("cuda", non_blocking=True))
    assert torch.ones(2).pin_memory().cuda(non_blocking=True).tolist() == [1.0, 1.0]


def test_recurrent_networks_do_not_warn_of_cudnn():
    # torch's test utilities, which other tests of this process import, forbid plain assignments.
    with torch.backends.__allow_nonbracketed_mutation():
        torch.backends.cudnn.benchmark = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network = nn.LSTM(3, 4).cuda()
        output, _ = network(torch.ones(5, 2, 3).cuda())
    output.sum().backward()
    assert is_on_musa(output) and is_on_musa(network.weight_hh_l0.grad)
    packed = nn.utils.rnn.pack_sequence([torch.ones(2, 3), torch.ones(1, 3)]).cuda()
    assert packed.is_cuda


def test_a_wrapper_of_a_tensor_is_on_its_device():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, device=inner.device
            )

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError

    assert is_on_musa(Wrapper(torch.ones(2, device="cuda")))


def test_data_parallel_uses_both_devices():
    model = nn.DataParallel(nn.Linear(3, 2).cuda(), device_ids=[0, 1])
    seen_on = []
    model.module.register_forward_hook(lambda module, inputs, output: seen_on.append(output.device.index))
    x = torch.ones(4, 3)
    output = model(x.cuda())
    output.sum().backward()
    assert sorted(seen_on) == [0, 1] and output.device == CUDA
    torch.testing.assert_close(model.module.weight.grad.cpu(), torch.full((2, 3), 4.0))


def test_threads_of_the_program_are_translated_too():
    def work():
        found.append(torch.ones(1, device="cuda").is_cuda)

    found = []
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]),
        lambda: torch.autograd.profiler.profile(use_device="cuda"),
    ],
)
def test_profilers_record_the_kernels_of_musa(make):
    x = torch.ones(8, 8, device="cuda")
    with make() as profile:
        x @ x
        torch.cuda.synchronize()
    averages = profile.key_averages()
    assert sum(event.device_time_total for event in averages) > 0
    assert "Self MUSA" in averages.table(sort_by="cuda_time_total")


def test_markers_and_copies():
    torch.cuda.nvtx.range_push("step")
    torch.cuda.nvtx.mark("here")
    torch.cuda.nvtx.range_pop()
    x = torch.ones(2, device="cuda")
    assert is_on_musa(copy.deepcopy(x)) and is_on_musa(x.clone()) and is_on_musa(x.detach())


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}], ids=str)
def test_optimizers_step_on_musa(optimizer, options):
    weight = nn.Parameter(torch.ones(3, device="cuda"))
    stepped = optimizer([weight], lr=0.1, **options)
    (weight * torch.arange(1.0, 4.0, device="cuda")).sum().backward()
    stepped.step()
    assert is_on_musa(weight) and (weight < 1).all()


def test_flex_attention_and_its_gradients_are_computed_on_musa():
    """Without torch.compile. Before, torch ended the process."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def causal(batch, head, row, column):
        return row >= column

    leaves = [torch.randn(1, 2, 32, 16, device="cuda", requires_grad=True) for _ in range(3)]
    bias = torch.randn(2, device="cuda", requires_grad=True)
    mask = create_block_mask(causal, None, None, 32, 32, device="cuda")
    result = flex_attention(
        *leaves, score_mod=lambda score, batch, head, row, column: score * bias[head], block_mask=mask
    )
    query, key, value = leaves
    scores = query @ key.mT / 4 * bias[:, None, None]
    position = torch.arange(32, device="cuda")
    expected = scores.masked_fill(position[:, None] < position, -torch.inf).softmax(-1) @ value
    assert result.device == CUDA and is_on_musa(result)
    torch.testing.assert_close(result, expected)
    for gradient, reference in zip(
        torch.autograd.grad(result.square().sum(), (*leaves, bias)),
        torch.autograd.grad(expected.square().sum(), (*leaves, bias)),
        strict=True,
    ):
        torch.testing.assert_close(gradient, reference, rtol=1e-4, atol=1e-4)
