# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls out= overloads of ATen with arguments made from their schemas.

`python -m tests.musa_runtime.out_overloads FIRST STEP` calls every STEP-th overload from FIRST on, and prints
its name before the call, so that the one that ends the process is known. Arguments with which the CPU
succeeds are preferred: then the results must be equal.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from tests.conformance.decompositions import invariants

# Results that are random or uninitialised, or by-products that each device fills differently.
INCOMPARABLE = (
    "empty", "rand", "bernoulli", "multinomial", "normal", "uniform", "cauchy", "geometric", "exponential",
    "dropout", "poisson", "binomial", "gamma", "dirichlet", "rrelu", "resize", "from_file", "kthvalue",
    "log_sigmoid", "unique_dim", "_pdist_backward", "_weight_norm_interface_backward", "binary_cross_entropy",
)  # fmt: skip

# torch's CPU kernels read past the end of these overloads' arguments, unless the arguments agree.
UNCHECKED_ON_THE_CPU = (
    "aten::_batch_norm_no_update.out",
    "aten::_convert_indices_from_csr_to_coo.out",
    "aten::_native_batch_norm_legit.no_stats_out",
    "aten::_nnpack_spatial_convolution.out",
    "aten::native_batch_norm.out",
    "aten::slow_conv_transpose3d.out",
)


def overloads() -> list[torch.FunctionSchema]:
    """Schemas of ATen that write to an argument that is given by keyword, as out= is."""
    schemas = (s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::"))
    written = (s for s in schemas if any(map(is_out, s.arguments)))
    return sorted((s for s in written if full_name(s) not in UNCHECKED_ON_THE_CPU), key=str)


def full_name(schema) -> str:
    return f"{schema.name}.{schema.overload_name}"


def is_out(argument) -> bool:
    return argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write


def recipes() -> Iterator[dict[str, Any]]:
    """Values for each type of argument; the first with which the CPU succeeds is taken."""
    square = torch.arange(1.0, 17.0).view(4, 4) / 16 + torch.eye(4)
    batch = torch.arange(1.0, 33.0).view(1, 2, 4, 4) / 32
    small = torch.tensor([[0, 1, 1, 0]] * 4)
    for tensor, indices, sizes in itertools.product(
        (square, square[0], batch, batch[0], small, square > 1, torch.tensor(1.5), batch.unsqueeze(0)),
        (False, True),
        ([2, 2], [0, 1], [1], [1, 1, 1]),
    ):
        yield {"tensor": tensor, "index": small if indices else tensor, "sizes": sizes}


def value_of(argument, recipe: dict[str, Any]) -> Any:
    kind = str(argument.type)
    if kind == "Tensor":
        return recipe[
            "index" if "ind" in argument.name or argument.name in ("target", "offsets") else "tensor"
        ].clone()
    if kind.startswith("Optional"):
        return None
    if kind.startswith("List[Optional[Tensor"):
        return [torch.tensor([0, 1])]
    if kind.startswith("List[Tensor"):
        return [recipe["tensor"].clone(), recipe["tensor"].clone()]
    if kind.startswith("List["):
        return recipe["sizes"] if "int" in kind or "Int" in kind else []
    return {"int": 1, "SymInt": 1, "bool": False, "float": 1.0, "number": 1, "str": "sum"}.get(kind)


def arguments_of(schema, recipe) -> tuple[list, dict]:
    args, kwargs = [], {}
    for argument in schema.arguments:
        if is_out(argument):
            several = str(argument.type).startswith("List")
            kwargs[argument.name] = [torch.empty(0), torch.empty(0)] if several else torch.empty(0)
        elif argument.has_default_value():
            continue
        elif argument.kwarg_only:
            kwargs[argument.name] = value_of(argument, recipe)
        else:
            args.append(value_of(argument, recipe))
    return args, kwargs


def on_musa(value):
    return torch.utils._pytree.tree_map(lambda v: v.to("musa") if isinstance(v, torch.Tensor) else v, value)


def call(schema, args, kwargs) -> list[torch.Tensor]:
    packet = getattr(torch.ops.aten, schema.name.split("::")[1])
    getattr(packet, schema.overload_name)(*args, **kwargs)
    outs = [kwargs[argument.name] for argument in schema.arguments if is_out(argument)]
    return [each for out in outs for each in (out if isinstance(out, list) else [out])]


def cpu_success(schema) -> tuple[list, dict, list[torch.Tensor]] | None:
    """Arguments with which the CPU succeeds in some dtype of out=, and its results."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        for recipe in recipes():
            args, kwargs = arguments_of(schema, recipe)
            outs = [a.name for a in schema.arguments if is_out(a)]
            for name in outs:
                out = kwargs[name]
                kwargs[name] = [o.to(dtype) for o in out] if isinstance(out, list) else out.to(dtype)
            given = torch.utils._pytree.tree_map(
                lambda v: v.clone() if isinstance(v, torch.Tensor) else v, (args, kwargs)
            )
            try:
                return *given, call(schema, args, kwargs)
            except (RuntimeError, IndexError, ValueError, NotImplementedError, TypeError):
                continue
    return None


def checked(schema) -> str:
    """How the call ended: "equal", "refused" with the error, "WRONG", or "not called on the CPU"."""
    found = cpu_success(schema)
    args, kwargs = arguments_of(schema, next(recipes())) if found is None else found[:2]
    print("on the device:", end=" ", flush=True)
    try:
        actual = call(schema, on_musa(args), on_musa(kwargs))
        torch.musa.synchronize()
    except (RuntimeError, IndexError, ValueError, NotImplementedError, TypeError) as error:
        return f"refused: {type(error).__name__}: {str(error).splitlines()[0][:150]}"
    if found is None:
        return "not called on the CPU"
    if any(part in schema.name for part in INCOMPARABLE):
        return "incomparable"
    if [a.shape for a in actual] != [b.shape for b in found[2]]:
        return f"WRONG: {[a.shape for a in actual]} for {[b.shape for b in found[2]]}"
    for a, b in zip(invariants(schema.name, actual), invariants(schema.name, found[2]), strict=True):
        if a.shape != b.shape or not torch.allclose(a.cpu(), b, rtol=1e-3, atol=1e-4, equal_nan=True):
            return f"WRONG: {a.cpu().flatten()[:4]} for {b.flatten()[:4]}"
    return "equal"


def main() -> None:
    warnings.simplefilter("ignore")
    first, step = map(int, sys.argv[1:])
    torch.musa.init()
    every = overloads()
    for number in range(first, len(every), step):
        schema = every[number]
        print(number, full_name(schema), end=" ", flush=True)
        print(checked(schema), flush=True)


if __name__ == "__main__":
    main()
