# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saves each difference to a folder, with a script that repeats the call without this package."""

from __future__ import annotations

import math
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from musa_runtime import switches

from . import call_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .call import OperatorCall
    from .host_arguments import HostArguments

_SCRIPT = '''\
"""Repeats one operator on the musa device and compares it with the result that the CPU gave.

{title}
Exit status: 0 if they are the same, 1 if they differ.
"""

import pathlib
import sys

import torch

saved = torch.load(pathlib.Path(__file__).with_name("call.pt"), weights_only=True)
expected = saved["expected"]
tolerances = {tolerance}  # (rtol, atol)


def place(device):
    """The saved tensors on the device, with their strides. Tensors that shared memory still do."""
    storages, placed = {{}}, []
    for tensor, moves in zip(saved["tensors"], saved["on_device"]):
        storage, target = tensor.untyped_storage(), device if moves else "cpu"
        key = (storage.data_ptr(), target)
        if key not in storages:
            data = torch.empty(0, dtype=torch.uint8).set_(storage)
            storages[key] = data.to(target, copy=True).untyped_storage()
        copy = torch.empty(0, dtype=tensor.dtype, device=target)
        copy.set_(storages[key], tensor.storage_offset(), tensor.size(), tensor.stride())
        placed.append(copy)
    return placed


def outputs(name, value):
    if isinstance(value, torch.Tensor):
        return {{name: value}}
    if isinstance(value, (list, tuple)):
        return {{k: v for i, item in enumerate(value) for k, v in outputs(f"{{name}}[{{i}}]", item).items()}}
    return {{name: torch.tensor(value)}} if isinstance(value, (bool, int, float)) else {{}}


t = place("musa")
result = outputs("result", {call})
{written}
status = 0
for name, wanted in expected.items():
    have = result[name].cpu()
    if have.shape != wanted.shape or have.dtype != wanted.dtype:
        print(f"{{name}}: {{have.dtype}} {{have.shape}}, expected {{wanted.dtype}} {{wanted.shape}}")
        status = 1
        continue
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    a, e = have.to(wide), wanted.to(wide)
    rtol, atol = tolerances[name]
    scale = float(e[e.isfinite()].abs().square().mean().sqrt()) if e.isfinite().any() else 0.0
    same = (a == e) | (a.isnan() & e.isnan())
    error = (a - e).abs().masked_fill(same, 0.0)
    wrong = ~same & ~(error <= atol + rtol * (e.abs() + scale))
    print(f"{{name}}: {{int(wrong.sum())}} of {{wrong.numel()}} elements differ")
    if wrong.any():
        first = tuple(wrong.nonzero()[0].tolist())
        print(f"  first at {{list(first)}}: {{have[first]}} on the device, {{wanted[first]}} on the CPU")
        print(f"  largest error: {{float(error.max())}}")
        status = 1
sys.exit(status)
'''

_SCRIPT_OF_REPLAY = '''\
"""Repeats one operator on the musa device and compares it with the CPU.

{title}
Exit status: 0 if they are the same, 1 if they differ.
"""

import pathlib
import sys

from torch_musa.debug import replay

outcome = replay(pathlib.Path(__file__).with_name("call.pt"), namespaces={namespaces})
print(outcome)
sys.exit(outcome.status)
'''


class ReproducerFolder:
    """The folder of a comparison. Ranks of a distributed program use subfolders.

    Args:
        path (path): created when the first difference is saved; None to save nothing.
        most (int): maximum number of saved differences, the first ones of each operator in a module.
    """

    def __init__(self, path: str | os.PathLike[str] | None, most: int) -> None:
        self._path, self._most = None if path is None else Path(path), most
        self._saved: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()

    def save(
        self,
        call: OperatorCall,
        arguments: HostArguments,
        note: str,
        expected: dict[str, torch.Tensor],
        tolerances: Mapping[torch.dtype, tuple[float, float]],
    ) -> str:
        """Saves a call; returns its folder as a str, or "" if it was not saved."""
        key = call.name, call.module, call.phase
        with self._lock:
            if self._path is None or key in self._saved or len(self._saved) >= self._most:
                return ""
            self._saved.add(key)
        name = call.name.replace("::", ".")
        folder = of_rank(self._path) / f"{call.index:06d}_{name}"
        folder.mkdir(parents=True, exist_ok=True)
        call_file.save(folder / "call.pt", call, arguments, expected, note)
        text = _script(call, arguments, expected, note, tolerances)
        (folder / "reproduce.py").write_text(text, encoding="utf-8")
        return str(folder)


def rank_of_process() -> int | None:
    """Returns the rank of this process, or None outside of distributed programs."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    if switches.count("WORLD_SIZE", 1) > 1 and os.environ.get("RANK"):
        return switches.count("RANK", 0)
    return None


def of_rank(folder: str | os.PathLike[str]) -> Path:
    """Returns the subfolder of this rank in a distributed program, otherwise the folder itself."""
    rank = rank_of_process()
    return Path(folder) if rank is None else Path(folder) / f"rank{rank}"


def _script(
    call: OperatorCall,
    arguments: HostArguments,
    expected: dict[str, torch.Tensor],
    note: str,
    tolerances: Mapping[torch.dtype, tuple[float, float]],
) -> str:
    where = call.where()
    title = f"{where}:\n{note}" if note else where
    title = title.replace("\\", "\\\\").replace('"""', "'''")
    namespace, _, name = call.func._schema.name.partition("::")
    if not expected:
        return _SCRIPT_OF_REPLAY.format(title=title, namespaces=[namespace])
    places: dict[int, int] = {}
    for _, tensor in call.inputs:
        places.setdefault(id(tensor), len(places))
    shown = [_as_code(value, places) for value in call.args]
    shown += [f"{name}={_as_code(value, places)}" for name, value in call.kwargs.items()]
    operator = f"torch.ops.{namespace}.{name}.{call.func._overloadname}"
    written = [f'result["{name}"] = t[{places[id(tensor)]}]' for name, tensor in call.written]
    limits = [
        f"{key!r}: {_as_code(tolerances.get(value.dtype, (0.0, 0.0)), places)}"
        for key, value in expected.items()
    ]
    return _SCRIPT.format(
        title=title,
        call=f"{operator}({', '.join(shown)})",
        written="\n".join(written),
        tolerance=f"{{{', '.join(limits)}}}",
    )


def _as_code(value: object, places: Mapping[int, int]) -> str:
    if isinstance(value, torch.Tensor):
        return f"t[{places[id(value)]}]"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_as_code(item, places) for item in value)}]"
    if isinstance(value, torch.device):
        return repr(str(value.type))
    if isinstance(value, torch.Generator):
        return "None"
    if isinstance(value, complex):  # repr() loses the sign of zeros: complex(-0.0, 0.0)
        return f"complex({_as_code(value.real, places)}, {_as_code(value.imag, places)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return (
        repr(value) if not isinstance(value, (torch.dtype, torch.layout, torch.memory_format)) else str(value)
    )
