# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A call that torch's CPU kernel refuses for its dtype changes none of its arguments.

The provider `host` relies on this: it passes such a call to the next provider with the same arguments
(host_table.h of musa-ops-host).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.conformance.operators import FOREACH_OPS, OPS, Case
from tests.conformance.transfer import tensors_in

pytestmark = pytest.mark.once

_DTYPES = (torch.float16, torch.complex32, torch.bool, torch.int32)
_MORE_DTYPES = (torch.bfloat16, torch.complex64, torch.int64, torch.uint8, torch.float32)


_NATIVE_TABLE = Path(__file__).parents[2] / "packages/musa-ops-host/csrc/host_table.cpp"
# Composed of several operators: one writes, and a later one refuses.
_SEVERAL_OPERATORS = frozenset(
    ("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d")
)


def _known_to_write_first() -> set[str]:
    """The in-place forms whose refused calls the provider `host` does not pass on."""
    listed = re.search(r"kWriteFirst\[\] = \{(.*?)\};", _NATIVE_TABLE.read_text(encoding="utf-8"), re.DOTALL)
    return {name.split(".")[0] for name in re.findall(r'"aten::([\w.]+)"', listed.group(1))}


def _forms(op: Any, sample: Any) -> list[tuple[Callable, tuple, dict]]:
    forms = [(op, sample.args, sample.kwargs)]
    if op.get_inplace() is not None:
        forms.append((op.get_inplace(), sample.args, sample.kwargs))
    if op.supports_out and isinstance(sample.input, torch.Tensor):
        forms.append((op, sample.args, {**sample.kwargs, "out": torch.ones_like(sample.input)}))
    return forms


def _bits(tensor: torch.Tensor) -> tuple:
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)
    return tuple(tensor.shape), bytes(plain.view(torch.uint8).tolist()) if plain.numel() else b""


def _refused_unchanged(form: Callable, first: Any, args: tuple, kwargs: dict) -> bool | None:
    """Whether a refused call left its arguments unchanged; None for a call that is not refused."""
    # The next provider writes all of an out= argument, so its content does not matter.
    read = {name: value for name, value in kwargs.items() if name != "out"}
    tensors = [tensor for tensor in tensors_in((first, args, read)) if tensor.layout is torch.strided]
    before = [_bits(tensor) for tensor in tensors]
    try:
        form(first, *args, **kwargs)
    except NotImplementedError:
        return before == [_bits(tensor) for tensor in tensors]
    except Exception:  # noqa: BLE001 - refused for another reason: it is not passed to the next provider
        return None
    return None


def test_a_refused_dtype_leaves_every_argument_unchanged_except_for_listed_operators(full: bool) -> None:
    refused, changed = 0, set()
    for op in [*OPS, *FOREACH_OPS]:
        for dtype in (*_DTYPES, *_MORE_DTYPES) if full else _DTYPES:
            if op.supports_dtype(dtype, "cpu") or op.name in _SEVERAL_OPERATORS:
                continue
            try:
                samples = list(Case(op, dtype).samples(full))
            except Exception:  # noqa: BLE001 - the database cannot make samples of this dtype
                continue
            for sample in samples:
                for form, args, kwargs in _forms(op, sample):
                    unchanged = _refused_unchanged(form, sample.input, args, kwargs)
                    refused += unchanged is not None
                    if unchanged is False:
                        changed.add(getattr(form, "__name__", op.name))
    known = _known_to_write_first()
    assert changed == known if full else changed <= known
    assert refused > 500, f"only {refused} calls were refused: the sweep proves nothing"


def test_a_kernel_that_writes_before_it_refuses_is_noticed() -> None:
    def writes_first(x: torch.Tensor) -> None:
        x.zero_()
        raise NotImplementedError

    assert _refused_unchanged(writes_first, torch.ones(2), (), {}) is False
