# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""bitsandbytes on musa: kernels compared with its default ones, optimizers, LLM.int8, NF4; no compilation."""

from __future__ import annotations

import math

import pytest
import torch

pytest.importorskip("bitsandbytes", reason="needs the package bitsandbytes, which tests/ecosystem installs")

import bitsandbytes as bnb
from bitsandbytes.functional import create_dynamic_map, quantize_4bit
from torch._dynamo.utils import counters

from tests.harness.subprocesses import run_python
from torch_musa.integrations.bitsandbytes import _KERNELS

OPTIMIZERS = ["momentum", "lars", "rmsprop", "adagrad", "adam", "lamb", "lion", "ademamix"]


def default_kernel(name):
    """The kernel of bitsandbytes for any device, run without compilation."""
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.bitsandbytes, packet), overload or "default")
    kernel = torch.library.get_kernel(operator, "MTIA")  # a device that has no kernel of its own
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)

    def call(*arguments):
        with torch.compiler.set_stance("force_eager"):
            return kernel.call_boxed(keys, *arguments)

    return call


def compilations():
    return counters["frames"]["total"]


def test_every_kernel_is_registered_for_the_device():
    for name in _KERNELS:
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"bitsandbytes::{name}", "PrivateUse1"), name


def test_bitsandbytes_is_imported_where_torch_activates_no_device():
    done = run_python("-c", "import torch, bitsandbytes", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr


def arguments_32bit(name, dtype, max_unorm, weight_decay, step):
    torch.manual_seed(7)
    p, g = (torch.randn(33, 20).to("musa", dtype) for _ in range(2))
    two = 2 if name == "ademamix" else 1
    state1 = torch.rand(two * 33, 20, device="musa").view(*([2] if two == 2 else []), 33, 20)
    state2 = torch.rand(33, 20, device="musa") if name in ("adam", "lamb", "ademamix") else None
    unorm = torch.full((1,), 0.5, device="musa")
    numbers = (max_unorm, p.float().norm().item(), 0.9, 0.95, 0.99, 5.0, 1e-8, weight_decay, step, 1e-2, 0.5)
    return [name, g, p, state1, state2, unorm, *numbers]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "max_unorm, weight_decay, step", [(0.0, 0.0, 1), (0.0, 0.1, 3), (1e-3, 0.1, 1), (1e3, 0.0, 4)]
)
def test_optimizers_of_32_bits_step_as_the_default_kernel(name, dtype, max_unorm, weight_decay, step):
    ours = arguments_32bit(name, dtype, max_unorm, weight_decay, step)
    theirs = [x.clone() if torch.is_tensor(x) else x for x in ours]
    start, before = ours[2].clone(), compilations()
    torch.ops.bitsandbytes.optimizer_update_32bit(*ours)
    assert compilations() == before
    default_kernel("optimizer_update_32bit")(*theirs)
    assert not torch.equal(ours[2], start)
    for index in (2, 3, 4):
        # The same formula in float32 with other roundings; parameters are rounded once to their dtype.
        torch.testing.assert_close(
            ours[index], theirs[index], rtol=1e-5 if index > 2 else None, atol=None if index == 2 else 1e-6
        )
    if max_unorm > 0:
        torch.testing.assert_close(ours[5], theirs[5], rtol=2e-3 if dtype != torch.float32 else 1e-5, atol=0)


def test_adam_of_float32_is_torchs_fused_step():
    ours = arguments_32bit("adam", torch.float32, 0.0, 0.1, 3)
    ours[-1] = 1.0
    theirs = [x.clone() if torch.is_tensor(x) else x for x in ours]
    torch.ops.bitsandbytes.optimizer_update_32bit(*ours)
    default_kernel("optimizer_update_32bit")(*theirs)
    for index in (2, 3, 4):
        torch.testing.assert_close(ours[index], theirs[index], rtol=1e-5, atol=1e-6)


def test_the_default_kernel_tries_to_compile():
    """Shows that `compilations()` counts compilations, as the other tests require that it does not change."""
    code = """
        import torch, bitsandbytes
        from torch._dynamo.utils import counters
        p, g, m = (torch.ones(4, device="musa") for _ in range(3))
        kernel = torch.library.get_kernel(
            torch.ops.bitsandbytes.optimizer_update_32bit.default, "MTIA")
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)
        numbers = (0.0, 0.0, 0.9, 0.9, 0.0, 0.0, 1e-8, 0.0, 1, 1e-2, 1.0)
        kernel.call_boxed(keys, "lion", g, p, m, None, None, *numbers)
        assert counters["frames"]["total"] > 0
    """
    done = run_python("-c", "\n".join(line[8:] for line in code.splitlines()))
    assert done.returncode == 0, done.stderr


def textbook(name, p, g, m, v, step):
    """A float64 step of the published algorithms; decay is decoupled for Adam and Lion, else a penalty."""
    lr, decay, b1, b2, b3, alpha, eps = 1e-2, 0.1, 0.9, 0.95, 0.99, 5.0, 1e-8
    if name in ("adam", "lamb", "lion", "ademamix"):
        p = p * (1 - lr * decay)
    else:
        g = g + decay * p
    if name in ("adam", "lamb"):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p = p - lr * (m / (1 - b1**step)) / ((v / (1 - b2**step)).sqrt() + eps)
    elif name == "ademamix":
        fast, slow = b1 * m[0] + (1 - b1) * g, b3 * m[1] + (1 - b3) * g
        v = b2 * v + (1 - b2) * g * g
        p = p - lr * (fast / (1 - b1**step) + alpha * slow) / ((v / (1 - b2**step)).sqrt() + eps)
        m = torch.stack([fast, slow])
    elif name == "lion":
        p = p - lr * (b1 * m + (1 - b1) * g).sign()
        m = b2 * m + (1 - b2) * g
    elif name in ("momentum", "lars"):
        m = g if step == 1 else b1 * m + g
        p = p - lr * m
    elif name == "rmsprop":
        m = b1 * m + (1 - b1) * g * g
        p = p - lr * g / (m.sqrt() + eps)
    else:
        m = m + g * g
        p = p - lr * g / (m.sqrt() + eps)
    return p, m, v


def decode(codes, qmap, absmax):
    blocks = codes.reshape(-1, 256) if codes.numel() % 256 == 0 else None
    assert blocks is not None
    return (qmap.double()[blocks.long()] * absmax.double().reshape(-1, 1)).reshape(codes.shape)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_optimizers_of_8_bits_step_as_the_formula_between_decoding_and_encoding(name, dtype):
    torch.manual_seed(7)
    signed, unsigned = (create_dynamic_map(signed=s).to("musa") for s in (True, False))
    p, g = (torch.randn(16, 64).to("musa", dtype) for _ in range(2))
    two = name in ("adam", "lamb", "ademamix")
    square = name in ("rmsprop", "adagrad")
    qmap1, qmap2 = (unsigned if square else signed), (unsigned if two else None)
    lead = (2,) if name == "ademamix" else ()
    state1 = torch.randint(0, 256, (*lead, 16, 64), dtype=torch.uint8, device="musa")
    state2 = torch.randint(0, 256, (16, 64), dtype=torch.uint8, device="musa") if two else None
    absmax1, absmax2 = torch.rand(*lead, 4, device="musa"), torch.rand(4, device="musa") if two else None
    m = decode(state1.cpu(), qmap1.cpu(), absmax1.cpu())
    v = decode(state2.cpu(), qmap2.cpu(), absmax2.cpu()) if two else None
    expected_p, expected_m, expected_v = textbook(name, p.cpu().double(), g.cpu().double() * 0.5, m, v, 3)
    before = compilations()
    torch.ops.bitsandbytes.optimizer_update_8bit_blockwise(
        name,
        g,
        p,
        state1,
        state2,
        0.9,
        0.95,
        0.99,
        5.0,
        1e-8,
        3,
        1e-2,
        qmap1,
        qmap2,
        absmax1,
        absmax2,
        0.1,
        0.5,
    )
    assert compilations() == before
    torch.testing.assert_close(
        p.cpu(), expected_p.to(dtype), rtol=1e-5 if dtype == torch.float32 else 8e-3, atol=1e-5
    )
    for codes, qmap, absmax, value in (
        (state1, qmap1, absmax1, expected_m),
        (state2, qmap2, absmax2, expected_v),
    ):
        if codes is None:
            continue
        blocks = value.reshape(-1, 256)
        largest = blocks.abs().amax(1, keepdim=True)
        torch.testing.assert_close(absmax.cpu().double().reshape(-1, 1), largest, rtol=1e-5, atol=0)
        nearest = (blocks / largest).unsqueeze(-1).sub(qmap.cpu().double()).abs().amin(-1)
        error = (decode(codes.cpu(), qmap.cpu(), absmax.cpu()).reshape(-1, 256) - blocks).abs() / largest
        # Each code is the nearest one to its value, except for the rounding of float32.
        assert (error <= nearest + 1e-5).all()


def test_wrong_optimizers_are_refused():
    arguments = arguments_32bit("adam", torch.float32, 0.0, 0.0, 1)
    with pytest.raises(ValueError, match="'adamw' is not one of adagrad"):
        torch.ops.bitsandbytes.optimizer_update_32bit("adamw", *arguments[1:])
    with pytest.raises(NotImplementedError, match="skip_zeros"):
        torch.ops.bitsandbytes.optimizer_update_32bit(*arguments, True)


@pytest.mark.parametrize(
    "cls", ["AdamW8bit", "AdamW32bit", "Lion8bit", "PagedAdamW8bit", "AdEMAMix8bit", "RMSprop8bit"]
)
def test_a_model_trains_with_the_optimizer_classes(cls):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)).to("musa")
    optimizer = getattr(bnb.optim, cls)(model.parameters(), lr=1e-3)
    x = torch.randn(64, 64, device="musa")
    losses, before = [], compilations()
    for _ in range(12):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True) / 8)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0] and compilations() == before
    state = optimizer.state[model[0].weight]["state1"]
    assert state.device.type == ("cpu" if "Paged" in cls and state.device.type == "cpu" else "musa")
    assert state.dtype == (torch.float32 if "32bit" in cls else torch.uint8)


@pytest.mark.parametrize("size", [(64, 64), (3, 65), (1, 300), (1, 7)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_blocks_of_8_bits_are_decoded_as_by_the_default_kernel(size, dtype):
    code = create_dynamic_map().to("musa")
    codes, absmax = torch.ops.bitsandbytes.quantize_blockwise(torch.randn(size, device="musa"), code, 256)
    arguments = (codes, absmax, code, 256, dtype)
    expected = default_kernel("dequantize_blockwise")(*arguments)
    assert torch.equal(torch.ops.bitsandbytes.dequantize_blockwise(*arguments), expected)
    out = torch.empty_like(expected)
    torch.ops.bitsandbytes.dequantize_blockwise.out(*arguments, out)
    assert torch.equal(out, expected)


@pytest.mark.parametrize("quant_type", ["nf4", "fp4"])
@pytest.mark.parametrize("size", [(64, 64), (5, 26), (3, 3)])
@pytest.mark.parametrize("storage", [torch.uint8, torch.bfloat16])
def test_blocks_of_4_bits_are_decoded_as_by_the_default_kernel(quant_type, size, storage):
    if storage != torch.uint8 and math.prod(size) % 4:
        storage = torch.uint8
    weight = torch.randn(size, device="musa")
    packed, absmax = torch.ops.bitsandbytes.quantize_4bit(weight, 64, quant_type, storage)
    arguments = (packed, absmax, 64, quant_type, size, torch.float16)
    expected = default_kernel("dequantize_4bit")(*arguments)
    before = compilations()
    result = torch.ops.bitsandbytes.dequantize_4bit(*arguments)
    assert result.shape == size and torch.equal(result, expected) and compilations() == before
    out = torch.empty_like(expected)
    torch.ops.bitsandbytes.dequantize_4bit.out(*arguments, out)
    assert torch.equal(out, expected)
    assert (result.float() - weight).abs().max() < weight.abs().max() / 2


def test_int8_products_are_exact_where_the_default_kernel_rounds():
    torch.manual_seed(1)
    a = torch.randint(100, 128, (5, 4096), dtype=torch.int8)
    b = torch.randint(100, 128, (7, 4096), dtype=torch.int8)
    exact = (a.long() @ b.long().t()).int()
    arguments = (a.to("musa"), b.to("musa"))
    assert torch.equal(torch.ops.bitsandbytes.int8_linear_matmul(*arguments).cpu(), exact)
    assert not torch.equal(default_kernel("int8_linear_matmul")(*arguments).cpu(), exact)
    out = torch.empty(5, 7, dtype=torch.int32, device="musa")
    torch.ops.bitsandbytes.int8_linear_matmul.out(*arguments, out)
    assert torch.equal(out.cpu(), exact)
    with pytest.raises(ValueError, match="must be int32"):
        torch.ops.bitsandbytes.int8_linear_matmul.out(*arguments, out.float())


def test_int8_linear_layers_give_the_results_of_the_cpu():
    torch.manual_seed(2)
    layer = bnb.nn.Linear8bitLt(1536, 32, has_fp16_weights=False, threshold=6.0)
    weight = layer.weight.data.clone()
    on_cpu = bnb.nn.Linear8bitLt(1536, 32, has_fp16_weights=False, threshold=6.0)
    on_cpu.load_state_dict({"weight": weight, "bias": layer.bias.data})
    on_cpu, on_musa = on_cpu.to("cpu"), layer.to("musa")
    x = torch.randn(9, 1536)
    x[:, 5] = 20.0  # an outlier column, computed in half precision
    before = compilations()
    with torch.no_grad():
        result = on_musa(x.to("musa", torch.float16))
    assert on_musa.weight.dtype == torch.int8 and compilations() == before
    exact = torch.nn.functional.linear(x, weight, layer.bias.detach().cpu().float())
    assert (result.cpu().float() - exact).abs().max() < 0.05 * exact.abs().max()
    expected = on_cpu(x.half())
    torch.testing.assert_close(result.cpu().float(), expected.float(), rtol=2e-2, atol=2e-2)


def test_double_quantization_restores_rows_and_columns():
    torch.manual_seed(2)
    x = torch.randn(12, 40)
    x[3, 7] = 30.0
    by_row, by_column, rows, columns, outliers = torch.ops.bitsandbytes.int8_double_quant(x.to("musa"), 6.0)
    assert outliers.tolist() == [7]
    kept = x.masked_fill(x.abs() >= 6.0, 0.0)
    restored = by_column.cpu() * columns.cpu() / 127
    assert (restored - kept).abs().max() <= columns.max().item() / 253
    restored = by_row.cpu() * rows.cpu().unsqueeze(1) / 127
    kept[:, 7] = 0
    assert (restored - kept).abs().max() <= rows.max().item() / 253


@pytest.mark.parametrize("quant_type", ["nf4", "fp4"])
def test_4_bit_linear_layers_and_their_gradients(quant_type):
    torch.manual_seed(2)
    layer = bnb.nn.Linear4bit(
        64, 32, quant_type=quant_type, compute_dtype=torch.float32, compress_statistics=True
    )
    weight = layer.weight.data.clone()
    layer = layer.to("musa")
    x = torch.randn(9, 64, device="musa", requires_grad=True)
    before = compilations()
    result = layer(x)
    result.sum().backward()
    single = layer(x.detach()[:1])
    assert compilations() == before
    packed, state = quantize_4bit(weight, quant_type=quant_type, compress_statistics=True)
    restored = bnb.functional.dequantize_4bit(packed, state)
    expected = torch.nn.functional.linear(x.detach().cpu(), restored, layer.bias.detach().cpu())
    torch.testing.assert_close(result.detach().cpu(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(single.detach().cpu(), expected[:1], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(x.grad.cpu(), restored.sum(0).expand(9, 64), rtol=1e-4, atol=1e-4)
