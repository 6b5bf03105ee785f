# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Products of 8-bit floats with scales, as torch.nn.functional.scaled_mm and scaled_grouped_mm call them."""

from __future__ import annotations

import re

import pytest
import torch
from torch.nn.functional import ScalingType, SwizzleType, scaled_grouped_mm, scaled_mm

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.usefixtures("musa")

TENSOR, ROW = ScalingType.TensorWise, ScalingType.RowWise
TILE, BLOCK = ScalingType.BlockWise1x128, ScalingType.BlockWise128x128
RECIPES = [(TENSOR, TENSOR), (ROW, ROW), (TILE, TILE), (TILE, BLOCK), (BLOCK, TILE)]
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def tiles(size: int) -> int:
    return -(-size // 128)


def factor(rows: int, k: int, dtype: torch.dtype = E4M3) -> torch.Tensor:
    return torch.randn(rows, k).to(dtype)


def scale(recipe: ScalingType, rows: int, k: int, of_a: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """A scale in torch's layout, and the numbers that it stands for, (rows, k). Neighbours differ."""

    def numbers(*shape: int) -> torch.Tensor:
        return torch.rand(*shape) + 0.5

    if recipe == TENSOR:
        given = numbers(1)
        return given.reshape(()), given.expand(rows, k)
    if recipe == ROW:
        given = numbers(rows, 1)
        return given if of_a else given.t(), given.expand(rows, k)
    if recipe == TILE:
        given = numbers(tiles(k), rows)
        return given.t(), given.t().repeat_interleave(128, 1)[:, :k]
    given = torch.full((tiles(rows), (tiles(k) + 3) // 4 * 4), torch.nan)  # the padding is not read
    given[:, : tiles(k)] = numbers(tiles(rows), tiles(k))
    return given.t(), given.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :k]


def product(a, numbers_a, b, numbers_b, bias=None) -> torch.Tensor:
    """The reference in float64: a (m, k) and b (n, k) times their scales."""
    result = (a.double() * numbers_a.double()) @ (b.double() * numbers_b.double()).t()
    return result if bias is None else result + bias.double()


def assert_near(actual: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> None:
    assert actual.dtype == dtype and actual.device.type == "musa"
    tolerance = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    torch.testing.assert_close(
        actual.cpu().double(), wanted, rtol=tolerance, atol=tolerance * wanted.abs().mean().item()
    )


def call(a, scale_a, recipe_a, b, scale_b, recipe_b, **options) -> torch.Tensor:
    return scaled_mm(
        a.to("musa"), b.to("musa").t(), scale_a.to("musa"), recipe_a, scale_b.to("musa"), recipe_b, **options
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float16])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 16, 16), (130, 272, 400), (256, 128, 256), (5, 144, 1024)])
@pytest.mark.parametrize("recipes", RECIPES, ids=lambda pair: "-".join(str(recipe) for recipe in pair))
def test_each_recipe(served_by_mudnn, recipes, m, n, k, dtype):
    a, b = factor(m, k), factor(n, k)
    (scale_a, numbers_a), (scale_b, numbers_b) = scale(recipes[0], m, k, True), scale(recipes[1], n, k, False)
    actual, by_mudnn = served_by_mudnn(
        "aten::_scaled_mm_v2",
        lambda: call(a, scale_a, recipes[0], b, scale_b, recipes[1], output_dtype=dtype),
    )
    assert by_mudnn
    assert_near(actual, product(a, numbers_a, b, numbers_b), dtype)


@pytest.mark.parametrize("recipes", RECIPES, ids=lambda pair: "-".join(str(recipe) for recipe in pair))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_bias(recipes, dtype):
    a, b, bias = factor(33, 256), factor(48, 256), torch.randn(48).to(dtype)
    scale_a, numbers_a = scale(recipes[0], 33, 256, True)
    scale_b, numbers_b = scale(recipes[1], 48, 256, False)
    actual = call(a, scale_a, recipes[0], b, scale_b, recipes[1], bias=bias.to("musa"), output_dtype=dtype)
    assert_near(actual, product(a, numbers_a, b, numbers_b, bias), dtype)


@pytest.mark.parametrize("recipe", [TENSOR, ROW])
@pytest.mark.parametrize("dtypes", [(E4M3, E5M2), (E5M2, E4M3)])
def test_one_factor_may_be_e5m2_without_blocks(recipe, dtypes):
    a, b = factor(32, 64, dtypes[0]), factor(48, 64, dtypes[1])
    (scale_a, numbers_a), (scale_b, numbers_b) = scale(recipe, 32, 64, True), scale(recipe, 48, 64, False)
    actual = call(a, scale_a, recipe, b, scale_b, recipe)
    assert_near(actual, product(a, numbers_a, b, numbers_b), torch.bfloat16)


@pytest.mark.parametrize("output_dtype", [E4M3, None])
def test_a_float8_result(output_dtype):
    a, b = factor(16, 32), factor(16, 32)
    number = torch.tensor(0.25)
    actual = call(a, number, TENSOR, b, number, TENSOR, output_dtype=output_dtype)
    assert actual.dtype == E4M3
    wanted = (a.double() @ b.double().t() / 16).float()
    torch.testing.assert_close(actual.cpu().float(), wanted.to(E4M3).float())


def out_call(a, b, scales, recipes, out, dtype=None):
    (scale_a, _), (scale_b, _) = scales
    return torch.ops.aten._scaled_mm_v2.out(
        a.to("musa"), b.to("musa").t(), [scale_a.to("musa")], [recipes[0].value], [], [scale_b.to("musa")],
        [recipes[1].value], [], None, dtype, out=out,
    )  # fmt: skip


@pytest.mark.parametrize("recipes", RECIPES, ids=lambda pair: "-".join(str(recipe) for recipe in pair))
@pytest.mark.parametrize("layout", ["empty", "rows", "columns", "wide"])
def test_out(served_by_mudnn, recipes, layout):
    a, b = factor(24, 256), factor(32, 256)
    scales = scale(recipes[0], 24, 256, True), scale(recipes[1], 32, 256, False)
    out = {
        "empty": torch.empty(0, device="musa"),
        "rows": torch.empty(24, 32, device="musa"),
        "columns": torch.empty(32, 24, device="musa").t(),
        "wide": torch.empty(24, 40, device="musa")[:, 3:35],
    }[layout]
    data = out.data_ptr()
    result, by_mudnn = served_by_mudnn(
        "aten::_scaled_mm_v2.out", lambda: out_call(a, b, scales, recipes, out)
    )
    assert by_mudnn and result is out
    assert layout == "empty" or out.data_ptr() == data
    assert_near(out, product(a, scales[0][1], b, scales[1][1]), torch.float32)


def test_out_of_another_dtype_is_refused():
    scales = scale(TENSOR, 16, 16, True), scale(TENSOR, 16, 16, False)
    out = torch.empty(16, 16, device="musa")
    with pytest.raises(ValueError, match="out_dtype is BFloat16, but out has the dtype Float"):
        out_call(factor(16, 16), factor(16, 16), scales, (TENSOR, TENSOR), out, torch.bfloat16)


@pytest.mark.parametrize("recipes", RECIPES[2:], ids=lambda pair: "-".join(str(recipe) for recipe in pair))
def test_scales_of_tiles_in_another_order_of_memory(recipes):
    a, b = factor(130, 400), factor(144, 400)
    (scale_a, numbers_a), (scale_b, numbers_b) = (
        scale(recipes[0], 130, 400, True),
        scale(recipes[1], 144, 400, False),
    )
    wanted = product(a, numbers_a, b, numbers_b)
    for reorder in (
        torch.Tensor.contiguous,
        lambda x: x.repeat_interleave(2, 0).repeat_interleave(3, 1)[::2, ::3],
    ):
        actual = scaled_mm(
            a.to("musa"), b.to("musa").t(), reorder(scale_a.to("musa")), recipes[0],
            reorder(scale_b.to("musa")), recipes[1],
        )  # fmt: skip
        assert_near(actual, wanted, torch.bfloat16)


@pytest.mark.parametrize("recipes", RECIPES, ids=lambda pair: "-".join(str(recipe) for recipe in pair))
@pytest.mark.parametrize(("m", "n", "k"), [(0, 16, 32), (16, 0, 32), (16, 32, 0)])
def test_no_elements(served_by_mudnn, recipes, m, n, k):
    (scale_a, _), (scale_b, _) = scale(recipes[0], m, k, True), scale(recipes[1], n, k, False)
    actual, by_mudnn = served_by_mudnn(
        "aten::_scaled_mm_v2",
        lambda: call(factor(m, k), scale_a, recipes[0], factor(n, k), scale_b, recipes[1]),
    )
    assert by_mudnn
    assert torch.equal(actual.cpu(), torch.zeros(m, n, dtype=torch.bfloat16))


def test_rows_with_a_leading_dimension():
    wide_a, wide_b = factor(40, 320), factor(48, 320)
    scale_a, numbers_a = scale(TILE, 40, 256, True)
    scale_b, numbers_b = scale(BLOCK, 48, 256, False)
    actual = scaled_mm(
        wide_a.to("musa")[:, 64:],
        wide_b.to("musa")[:, 64:].t(),
        scale_a.to("musa"),
        TILE,
        scale_b.to("musa"),
        BLOCK,
    )
    assert_near(actual, product(wide_a[:, 64:], numbers_a, wide_b[:, 64:], numbers_b), torch.bfloat16)


TOLD = "float32 scales that are not swizzled: TensorWise or RowWise for both, or BlockWise1x128 for one"
MX, NV = ScalingType.BlockWise1x32, ScalingType.BlockWise1x16
ONES = torch.ones


@pytest.mark.parametrize(
    ("scales", "recipes", "told"),
    [
        ((ONES(2), ONES(())), (TENSOR, TENSOR), r"scale_a must have 1 Float element.*is Float\[2\]"),
        ((ONES(()).double(), ONES(())), (TENSOR, TENSOR), r"scale_a must have 1 Float .* is Double"),
        ((ONES(32), ONES(1, 64)), (ROW, ROW), r"scale_a must have 32 Float elements of shape \[32, 1\]"),
        ((ONES(32, 1), ONES(1, 32)), (ROW, ROW), r"scale_b must have 64 Float elements of shape \[1, 64\]"),
        ((ONES(2, 32), ONES(64, 2)), (TILE, TILE), r"scale_a .* of shape \[32, 2\] for BlockWise1x128"),
        ((ONES(32, 2), ONES(2, 1)), (TILE, BLOCK), r"scale_b .* of shape \[4, 1\] for BlockWise128x128"),
        ((ONES(2, 1), ONES(64, 2)), (BLOCK, TILE), r"scale_a .* of shape \[4, 1\] for BlockWise128x128"),
        ((ONES(32, 1), ONES(())), (ROW, TENSOR), "does not take RowWise with TensorWise"),
        ((ONES(4, 1), ONES(4, 1)), (BLOCK, BLOCK), "BlockWise128x128 with BlockWise128x128"),
    ],
)
def test_scales_that_are_refused(scales, recipes, told):
    with pytest.raises(ValueError, match=told):
        call(factor(32, 256), scales[0], recipes[0], factor(64, 256), scales[1], recipes[1])


@pytest.mark.parametrize("recipe", [MX, NV])
def test_recipes_of_other_devices_are_not_implemented(recipe):
    with pytest.raises(NotImplementedError, match=rf"{re.escape(TOLD)}.* does not take .*1x(16|32) with"):
        call(factor(32, 256), ONES(32, 8), recipe, factor(64, 256), ONES(64, 8), recipe)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (
            {"swizzle_a": SwizzleType.SWIZZLE_32_4_4},
            NotImplementedError,
            "TensorWise with TensorWise, swizzled",
        ),
        ({"output_dtype": torch.float64}, ValueError, "returns bfloat16, float16 or float32"),
        ({"output_dtype": torch.float32, "bias": ONES(64)}, ValueError, "Bias is not supported"),
        ({"bias": ONES(63).bfloat16()}, ValueError, r"must have 64 elements .* is BFloat16\[63\]"),
        ({"bias": ONES(64).half()}, ValueError, "result's dtype, BFloat16, but is Half"),
        ({"contraction_dim": (0, 1)}, ValueError, r"contracts the dimensions \(-1, -2\)"),
    ],
)
def test_options_that_are_refused(options, error, told):
    if "bias" in options:
        options = options | {"bias": options["bias"].to("musa")}
    with pytest.raises(error, match=told):
        call(factor(32, 256), ONES(()), TENSOR, factor(64, 256), ONES(()), TENSOR, **options)


@pytest.mark.parametrize(
    ("a", "b", "error", "told"),
    [
        (ONES(16, 32), ONES(32, 16), ValueError, "float8_e4m3fn factors, .* not Float and Float"),
        (ONES(16, 32).to(E5M2), ONES(16, 32).to(E5M2).t(), ValueError, "not Float8_e5m2 and Float8_e5m2"),
        (ONES(16, 40).to(E4M3), ONES(16, 40).to(E4M3).t(), ValueError, "divisible by 16"),
        (ONES(16, 32).to(E4M3), ONES(24, 32).to(E4M3).t(), ValueError, "divisible by 16"),
        (ONES(16, 32).to(E4M3), ONES(16, 48).to(E4M3).t(), ValueError, r"\(m, k\) and \(k, n\)"),
        (ONES(16, 32).to(E4M3), ONES(32, 16).to(E4M3), RuntimeError, "row-major and a column-major"),
        (ONES(32, 16).to(E4M3).t(), ONES(16, 32).to(E4M3).t(), RuntimeError, "row-major and a column-major"),
    ],
)  # fmt: skip
def test_factors_that_are_refused(a, b, error, told):
    one = ONES((), device="musa")
    with pytest.raises(error, match=told):
        scaled_mm(a.to("musa"), b.to("musa"), one, TENSOR, one, TENSOR)


def test_blocks_of_e5m2_are_refused():
    with pytest.raises(ValueError, match="not Float8_e4m3fn and Float8_e5m2"):
        call(factor(16, 128), ONES(16, 1), TILE, factor(16, 128, E5M2), ONES(16, 1), TILE)


# ---- grouped products


def grouped(a, b, scale_a, scale_b, offs=None, **options) -> torch.Tensor:
    """b is given as (..., n, k)."""
    return scaled_grouped_mm(
        a.to("musa"), b.to("musa").transpose(-2, -1), scale_a.to("musa"), ROW, scale_b.to("musa"), ROW,
        offs=None if offs is None else torch.tensor(offs, dtype=torch.int32, device="musa"), **options,
    )  # fmt: skip


def row_product(a, scale_a, b, scale_b) -> torch.Tensor:
    return product(a, scale_a[:, None], b, scale_b[:, None])


def rows(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) + 0.5


GROUPS = [[16, 48, 64], [0, 16, 64], [64, 64, 64], [5, 6, 40]]


@pytest.mark.parametrize("offs", GROUPS)
def test_groups_of_rows_times_matrices(served_by_mudnn, offs):
    a, b, scale_a, scale_b = factor(64, 96), factor(3 * 48, 96).view(3, 48, 96), rows(64), rows(3, 48)
    actual, by_mudnn = served_by_mudnn(
        "aten::_scaled_grouped_mm_v2", lambda: grouped(a, b, scale_a, scale_b, offs)
    )
    assert by_mudnn
    parts = [
        row_product(a[begin:end], scale_a[begin:end], b[i], scale_b[i])
        for i, (begin, end) in enumerate(zip([0, *offs], offs, strict=False))
    ]
    assert_near(actual[: offs[-1]], torch.cat(parts), torch.bfloat16)  # rows of no group are undefined


@pytest.mark.parametrize("offs", [[16, 48, 64], [0, 16, 64], [8, 24, 64]])
def test_matrices_times_groups_of_columns(offs):
    a, b, scale_a, scale_b = factor(3 * 24, 96).view(3, 24, 96), factor(64, 96), rows(3, 24), rows(64)
    actual = grouped(a, b, scale_a, scale_b, offs)
    parts = [
        row_product(a[i], scale_a[i], b[begin:end], scale_b[begin:end])
        for i, (begin, end) in enumerate(zip([0, *offs], offs, strict=False))
    ]
    assert_near(actual, torch.cat(parts, 1), torch.bfloat16)


@pytest.mark.parametrize("offs", [[16, 48, 64], [0, 16, 64], [32, 32, 64]])
def test_groups_along_k(offs):
    a, b, scale_a, scale_b = factor(24, 64), factor(48, 64), rows(3 * 24), rows(3 * 48)
    actual = grouped(a, b, scale_a, scale_b, offs)
    parts = [
        row_product(a[:, begin:end], scale_a[24 * i :][:24], b[:, begin:end], scale_b[48 * i :][:48])
        for i, (begin, end) in enumerate(zip([0, *offs], offs, strict=False))
    ]
    assert_near(actual, torch.stack(parts), torch.bfloat16)


def test_matrices_times_matrices(musa):
    a, b = factor(3 * 24, 96).view(3, 24, 96), factor(3 * 48, 96).view(3, 48, 96)
    scale_a, scale_b = rows(3, 24), rows(3, 48)
    wanted = torch.stack([row_product(a[i], scale_a[i], b[i], scale_b[i]) for i in range(3)])
    assert_near(grouped(a, b, scale_a, scale_b), wanted, torch.bfloat16)
    older = torch._scaled_grouped_mm(
        a.to("musa"), b.to("musa").transpose(-2, -1), scale_a.to("musa"), scale_b.to("musa")
    )
    assert_near(older, wanted, torch.bfloat16)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"offs": [16, 8, 64]}, RuntimeError, "offs must not decrease"),
        ({"offs": [16, 48, 65]}, RuntimeError, "exceed the size of the dimension, 64"),
        ({"offs": None}, ValueError, "offs must be given"),
        ({"offs": [16, 64]}, RuntimeError, "matrix batch sizes have to match"),
        ({"scale_a": rows(63)}, RuntimeError, r"scale_a must be a contiguous tensor of shape \[64\]"),
        ({"scale_b": rows(48)}, RuntimeError, r"scale_b must be a contiguous tensor of shape \[3, 48\]"),
        ({"a": factor(64, 96, E5M2)}, ValueError, "takes float8_e4m3fn factors, not Float8_e5m2"),
        ({"output_dtype": torch.float32}, ValueError, "returns bfloat16, not Float"),
    ],
)
def test_groups_that_are_refused(change, error, told):
    given = {
        "a": factor(64, 96),
        "b": factor(144, 96).view(3, 48, 96),
        "scale_a": rows(64),
        "scale_b": rows(3, 48),
        "offs": [16, 48, 64],
    }
    with pytest.raises(error, match=told):
        grouped(**(given | change))


def test_recipes_of_groups_that_are_refused():
    a, b = factor(64, 256).to("musa"), factor(128, 256).to("musa").t()
    ends = torch.tensor([256], dtype=torch.int32, device="musa")
    number = ONES((), device="musa")
    for recipe, error in ((TENSOR, ValueError), (MX, NotImplementedError)):
        with pytest.raises(error, match=r"takes float8 factors with float32 scales .* RowWise for both"):
            scaled_grouped_mm(a, b, number, recipe, number, recipe, offs=ends)


def test_a_capture_refuses_offsets_with_a_reason():
    stream, graph = torch.musa.Stream(), torch.musa.MUSAGraph()
    a, b = factor(64, 32).to("musa"), factor(16, 32).to("musa").view(1, 16, 32).transpose(1, 2)
    scale_a, scale_b = ONES(64, device="musa"), ONES(1, 16, device="musa")
    ends = torch.tensor([64], dtype=torch.int32, device="musa")
    torch.musa.synchronize()
    with (
        pytest.raises(NotImplementedError, match=r"captured .* it reads the offsets on the host"),
        torch.musa.graph(graph, stream=stream),
    ):
        scaled_grouped_mm(a, b, scale_a, ROW, scale_b, ROW, offs=ends)


# ---- a layer


@pytest.mark.once
def test_a_layer_with_tiles_and_blocks_needs_no_copies_in_host_memory():
    code = """
    import torch
    from torch.nn.functional import ScalingType, linear, scaled_mm

    TILE = 128

    def quantized_activation(x):
        parts = x.view(x.size(0), -1, TILE)
        scale = parts.abs().amax(2).clamp(min=1e-4) / 448
        return (parts / scale[:, :, None]).view_as(x).to(torch.float8_e4m3fn), scale.t().contiguous().t()

    def quantized_weight(w):
        n, k = w.size(0) // TILE, w.size(1) // TILE
        parts = w.view(n, TILE, k, TILE)
        scale = parts.abs().amax((1, 3)) / 448
        padded = torch.zeros(n, (k + 3) // 4 * 4, device=w.device)
        padded[:, :k] = scale
        return (parts / scale[:, None, :, None]).view_as(w).to(torch.float8_e4m3fn), padded.t()

    torch.manual_seed(0)
    x, w = torch.randn(48, 384), torch.randn(256, 384)
    x8, scale_x = quantized_activation(x.to("musa"))
    w8, scale_w = quantized_weight(w.to("musa"))
    y = scaled_mm(
        x8, w8.t(), scale_x, ScalingType.BlockWise1x128, scale_w, ScalingType.BlockWise128x128,
        bias=torch.ones(256, device="musa", dtype=torch.bfloat16),
    )
    wanted = linear(x, w) + 1
    error = (y.cpu().float() - wanted).norm() / wanted.norm()
    assert 0.001 < error < 0.05, error
    print("copies:", *(row["op"] for row in torch.musa.ops.fallback_report()))
    """
    told = run_code(code, MUSA_EMULATOR_MEMORY="strict", TORCH_MUSA_FALLBACK="error")
    assert told == "copies:\n"


@pytest.mark.once
def test_a_device_without_8_bit_floats():
    code = """
    import torch
    from torch.nn.functional import ScalingType, scaled_grouped_mm, scaled_mm

    a = torch.ones(16, 128, device="musa").to(torch.float8_e4m3fn)
    one, tile = torch.ones((), device="musa"), torch.ones(16, 1, device="musa")
    row, tiles = ScalingType.RowWise, ScalingType.BlockWise1x128
    print(scaled_mm(a, a.t(), one, ScalingType.TensorWise, one, ScalingType.TensorWise)[0, 0].item())
    for f in (
        lambda: scaled_mm(a, a.t(), tile, tiles, tile, tiles),
        lambda: scaled_grouped_mm(a[None], a[None].transpose(1, 2), tile.t(), row, tile.t(), row),
    ):
        try:
            f()
        except NotImplementedError as error:
            print(str(error).splitlines()[0])
    """
    told = run_code(code, MUSA_EMULATOR_ARCH="mp_22", TORCH_MUSA_FALLBACK="allow").splitlines()
    assert told[0] == "128.0"
    assert [line.partition(",")[0] for line in told[1:]] == [
        "_scaled_mm_v2 needs a device with 8-bit floats",
        "_scaled_grouped_mm needs a device with 8-bit floats",
    ]
