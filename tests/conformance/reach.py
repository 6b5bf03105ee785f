# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Lists the overloads of the packs that the samples of torch's operator database reach.

`python -m tests.conformance.reach` calls every operator of the database on musa (plain, gradient, in place,
out=) in the current order of providers, and adds the overloads that were called to `reached_overloads.json`.
Record both orders:

    python -m tests.conformance.reach
    TORCH_MUSA_OPS=ported,host python -m tests.conformance.reach

test_unsampled_overloads.py needs a sample of its own for each overload that a pack serves and that is not in
the file.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.conformance import operators
from tests.conformance.comparison import outcome_of
from tests.conformance.transfer import tensors_in, to_device
from torch_musa import plugins

REACHED_FILE = Path(__file__).with_name("reached_overloads.json")
# The providers that packs bring; host and host-copy call torch's own kernels.
_NOT_OURS = ("host", "host-copy")
_DTYPES = (torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.bool)


def served() -> set[str]:
    """Every overload that an installed pack, or the runtime, offers a kernel for.

    Packs that other tests of this process have loaded from their build folders do not count.
    """
    torch.musa.init()
    ours = {"runtime", *(name for record in plugins.records() for name in record.providers)} - set(_NOT_OURS)
    return {row["op"] for row in torch.musa.ops.table() if ours.intersection(row["candidates"])}


def called() -> set[str]:
    """Those that a kernel of a pack has served in this process."""
    ops = torch.musa.ops
    return {
        op
        for op in served()
        if any(each["calls"] for each in ops.explain(op)["candidates"] if each["provider"] not in _NOT_OURS)
    }


def reached() -> set[str]:
    return set(json.loads(REACHED_FILE.read_text(encoding="utf-8")))


def _forms(op: Any, sample: Any, device: str) -> list[Callable[[], Any]]:
    def arguments() -> tuple:
        return to_device(device, sample.input, sample.args, sample.kwargs)

    def plain() -> Any:
        first, args, kwargs = arguments()
        with torch.device(device):
            return op(first, *args, **kwargs)

    def gradient() -> Any:
        first, args, kwargs = arguments()
        result = sample.output_process_fn_grad(op(first, *args, **kwargs))
        outputs = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
        inputs = [tensor for tensor in tensors_in((first, args, kwargs)) if tensor.requires_grad]
        return torch.autograd.grad(
            outputs, inputs, [torch.ones_like(out) for out in outputs], allow_unused=True
        )

    def in_place() -> Any:
        first, args, kwargs = arguments()
        with torch.no_grad():
            return op.get_inplace()(first, *args, **kwargs)

    def out() -> Any:
        result = plain()
        first, args, kwargs = arguments()
        with torch.no_grad():
            outs = [torch.empty_like(tensor) for tensor in tensors_in(result)]
            return op(
                first, *args, **kwargs, out=tuple(outs) if isinstance(result, (tuple, list)) else outs[0]
            )

    forms = [plain]
    if any(tensor.requires_grad for tensor in tensors_in((sample.input, sample.args, sample.kwargs))):
        forms.append(gradient)
    if op.get_inplace() is not None:
        forms.append(in_place)
    if op.supports_out:
        forms.append(out)
    return forms


def record(device: str = "musa", every: int = 1) -> set[str]:
    """Call every operator of the database, or the `every`-th ones. Exceptions are ignored: other suites test
    them.
    """
    warnings.simplefilter("ignore")
    for op in [*operators.OPS, *operators.FOREACH_OPS][::every]:
        for dtype in _DTYPES:
            if op.supports_dtype(dtype, "cpu"):
                differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
                for sample in operators.Case(op, dtype).samples(True, requires_grad=differentiable):
                    for form in _forms(op, sample, device):
                        outcome_of(form)
    return called()


def main() -> None:
    before = reached() if REACHED_FILE.exists() else set()
    now = before | record()
    REACHED_FILE.write_text(json.dumps(sorted(now), indent=0) + "\n", encoding="utf-8")
    left = served() - now
    print(f"{len(now)} overloads are reached, {len(now - before)} for the first time; {len(left)} are not")


if __name__ == "__main__":
    main()
