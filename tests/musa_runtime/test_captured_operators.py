# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's operator database in a graph: a replay is bitwise equal to the eager call, or the capture is
refused by name. Calls that are computed eagerly on copies in host memory are refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from torch.testing._internal import common_methods_invocations

from tests.conformance.transfer import tensors_in, to_device
from tests.harness.device import computes_float64
from tests.harness.subprocesses import run_code

_GROUPS = 24
_SAMPLES = 2
# Results whose values are uninitialised memory.
_UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Statistics of batch norm in evaluation mode, which are unused: the CPU's are empty, the meta kernel's are
# not.
_BY_PRODUCTS = {"native_batch_norm", "_native_batch_norm_legit"}
# The meta kernels have other strides than the CPU kernels; the values are equal.
_OTHER_STRIDES = {"fft.rfftn", "linalg.eig", "linalg.svd", "pca_lowrank", "svd", "svd_lowrank"}
# These are computed on the host where the device has no float64.
_TO_FLOAT64 = {"to", "double", "cdouble"}
# These operators read values on the host (also to check the success of a factorisation), have results whose
# shape depends on values, or have no meta kernel.
_REFUSED = {
    "__getitem__",
    "allclose",
    "argwhere",
    "cholesky",
    "combinations",
    "corrcoef",
    "cov",
    "equal",
    "histogram",
    "histogramdd",
    "item",
    "linalg.cholesky",
    "linalg.cond",
    "linalg.eigh",
    "linalg.eigvalsh",
    "linalg.inv",
    "linalg.ldl_factor",
    "linalg.lstsq",
    "linalg.lstsq.grad_oriented",
    "linalg.lu_factor",
    "linalg.matrix_rank",
    "linalg.matrix_rank.hermitian",
    "linalg.pinv",
    "linalg.pinv.hermitian",
    "linalg.pinv.singular",
    "linalg.solve",
    "linalg.svd",
    "linalg.svdvals",
    "linalg.tensorinv",
    "linalg.tensorsolve",
    "linspace.tensor_overload",
    "logcumsumexp",
    "logspace.tensor_overload",
    "masked.amax",
    "masked.amin",
    "masked.argmax",
    "masked.argmin",
    "masked.cumprod",
    "masked.cumsum",
    "masked.log_softmax",
    "masked.logaddexp",
    "masked.logsumexp",
    "masked.mean",
    "masked.median",
    "masked.norm",
    "masked.prod",
    "masked.softmax",
    "masked.softmin",
    "masked.std",
    "masked.sum",
    "masked.var",
    "masked_select",
    "matrix_exp",
    "narrow",
    "nn.functional.ctc_loss",
    "nn.functional.gaussian_nll_loss",
    "nonzero",
    "norm.nuc",
    "pca_lowrank",
    "pinverse",
    "svd",
    "svd_lowrank",
    "to_sparse",
    "unique",
    "unique_consecutive",
}


@pytest.fixture(autouse=True)
def _database_leaves_seeds_alone() -> Iterator[None]:
    # The database's wrappers of random operators set the seed before every call, which a capture refuses.
    with (
        mock.patch.object(
            common_methods_invocations, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs)
        ),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def _call(op: Any, sample: Any) -> Any:
    torch.manual_seed(3)
    return op(sample[0], *sample[1], **sample[2])


def _bits(value: torch.Tensor) -> torch.Tensor:
    return value.detach().resolve_conj().resolve_neg().cpu().contiguous().view(-1).view(torch.uint8)


def _same(value: torch.Tensor, expected: torch.Tensor) -> bool:
    if value.shape != expected.shape or value.dtype != expected.dtype:
        return False
    return value.numel() == 0 or torch.equal(_bits(value), _bits(expected))


def _host_copies(musa: Any) -> int:
    """Returns the number of operator calls that were computed on copies in host memory."""
    return sum(row["count"] for row in musa.ops.fallback_report())


def _compare(musa: Any, op: Any, sample: Any) -> str | None:
    """Returns None, "copied" (refused, and the eager call copies to the host), "refused", or the error."""
    arguments = to_device("musa", sample.input, sample.args, sample.kwargs)
    if any(each.layout is not torch.strided for each in tensors_in(arguments)):
        return None
    before = _host_copies(musa)
    try:
        expected = list(tensors_in(_call(op, to_device("musa", sample.input, sample.args, sample.kwargs))))
    except Exception:  # noqa: BLE001 - test_ops tests the eager call
        return None
    copied = _host_copies(musa) > before
    graph = musa.MUSAGraph()
    torch.manual_seed(3)
    try:
        with musa.graph(graph):
            result = list(tensors_in(op(arguments[0], *arguments[1], **arguments[2])))
    except RuntimeError as error:
        text = str(error)
        if "captur" not in text:
            return f"the capture raised {text[:200]}"
        return "copied" if copied else "refused"
    if copied:
        return "it was captured, though the eager call copies to the host"
    try:
        torch.manual_seed(3)
        graph.replay()
        musa.synchronize()
    except RuntimeError as error:
        return f"the replay raised {str(error)[:200]}"
    if len(result) != len(expected):
        return f"{len(result)} results, eagerly {len(expected)}"
    for index, (value, reference) in enumerate(zip(result, expected)):
        if not _same(value, reference):
            return f"result {index} differs: {value.dtype}{tuple(value.shape)}"
        if value.stride() != reference.stride() and value.numel() > 1:
            return f"stride {value.stride()}, eagerly {reference.stride()}"
    return None


def _expected(name: str, verdict: str) -> bool:
    if verdict == "copied":
        return True
    if verdict == "refused":
        return name in _REFUSED or (name in _TO_FLOAT64 and not computes_float64())
    if verdict.startswith("stride"):
        return name in _OTHER_STRIDES
    return verdict.startswith("result") and (
        name in _UNINITIALISED or (name in _BY_PRODUCTS and not verdict.startswith("result 0"))
    )


@pytest.mark.parametrize(
    "group",
    # A few groups cover every kind of operator; --full runs the whole database.
    [pytest.param(number, marks=() if number % 8 == 3 else pytest.mark.full) for number in range(_GROUPS)],
)
def test_replays_equal_eager_calls(musa, group):
    wrong = []
    compared = 0
    for entry in common_methods_invocations.op_db[group::_GROUPS]:
        if torch.float32 not in entry.dtypes:
            continue
        for number, sample in enumerate(list(entry.sample_inputs("cpu", torch.float32))[:_SAMPLES]):
            verdict = _compare(musa, entry.op, sample)
            compared += verdict is None
            if verdict is not None and not _expected(entry.full_name, verdict):
                wrong.append(f"{entry.full_name} {number}: {verdict}")
    assert not wrong, "\n".join(wrong)
    assert compared > 10, "too few calls were captured for a useful comparison"


_ON_DISCRETE_MEMORY = """
import torch
import torch.nn.functional as F
x = torch.randn(2, 4, 8, device="musa")
image, kernel = torch.randn(2, 4, 8, 8, device="musa"), torch.randn(4, 4, 3, 3, device="musa")
lstm = torch.nn.LSTM(8, 8).to("musa")
programs = {
    "product": lambda: x @ x.mT,
    "convolution": lambda: F.conv2d(image, kernel),
    "transposed convolution": lambda: F.conv_transpose2d(image, kernel),
    "gradients of a convolution": lambda: torch.ops.aten.convolution_backward(
        image, image, kernel, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
    ),
    "recurrent layer": lambda: lstm(x),
    "attention": lambda: F.scaled_dot_product_attention(x, x, x),
    "factorisation": lambda: torch.linalg.qr(x),
}
for name, program in programs.items():
    graph = torch.musa.MUSAGraph()
    try:
        with torch.musa.graph(graph):
            program()
        print(name, "captured")
    except RuntimeError as error:
        print(name, "cannot be captured into a musa graph" in str(error) and "Fix: " in str(error))
    after, graph = torch.ones(3, device="musa"), torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        after.copy_(x[0, 0, :3])
    graph.replay()
    print(torch.equal(after, x[0, 0, :3]), torch.musa.is_current_stream_capturing())
"""


def test_calls_that_are_computed_on_the_host_are_refused_on_discrete_memory():
    """No pack serves them, so they are computed on copies in host memory, for which a capture cannot wait."""
    environment = {"MUSA_EMULATOR_MEMORY": "strict", "TORCH_MUSA_OPS": "host-copy"}
    rows = run_code(_ON_DISCRETE_MEMORY, **environment).splitlines()
    assert len(rows) == 14
    assert [row.rpartition(" ")[2] for row in rows[::2]] == ["True"] * 7, rows
    assert rows[1::2] == ["True False"] * 7
