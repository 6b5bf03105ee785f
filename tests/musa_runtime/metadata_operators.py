# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls the operators of ATen that, by their schemas, may read only metadata, on a tensor of each layout.

`python -m tests.musa_runtime.metadata_operators` prints the calls that were served by copies in host memory,
then the number of operators that were called.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch

# Operators that return no tensor, or a view by their schema, and read or compute data nevertheless.
READS_DATA = {
    "aten::equal": "compares values",
    "aten::_sparse_broadcast_to": "computes new indices",
    "aten::permute": "computes new indices",
    "aten::unsqueeze": "computes new indices",
    "aten::select.int": "searches the indices",
}
# Operators that by their schema make tensors, from metadata and the memory of their operands.
MAKES_TENSORS = {
    "_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets", "q_per_channel_scales",
    "q_per_channel_zero_points",
}  # fmt: skip


def tensors() -> Iterator[tuple[str, torch.Tensor]]:
    """A 4 x 4 tensor of each layout on the device."""
    x = torch.eye(4, device="musa")
    channels = (torch.ones(4), torch.zeros(4, dtype=torch.long), 0, torch.qint8)
    yield "strided", x
    yield "coo", x.to_sparse()
    yield "csr", x.to_sparse_csr()
    yield "csc", x.to_sparse_csc()
    yield "bsr", x.to_sparse_bsr((2, 2))
    yield "bsc", x.to_sparse_bsc((2, 2))
    yield "nested", torch.nested.as_nested_tensor([x, x[:2]])
    yield "quantized", torch.quantize_per_tensor(x.cpu(), 0.1, 0, torch.qint8).to("musa")
    yield "quantized by channel", torch.quantize_per_channel(x.cpu(), *channels).to("musa")


def schemas() -> list[torch.FunctionSchema]:
    """Functional schemas without tensors in their results, or with views alone."""

    def reads_metadata(schema) -> bool:
        if schema.is_mutable or not schema.returns or not schema.name.startswith("aten::"):
            return False
        if not any(str(argument.type) == "Tensor" for argument in schema.arguments):
            return False
        plain = all("Tensor" not in str(each.type) for each in schema.returns)
        views = all(each.alias_info is not None for each in schema.returns)
        return plain or views or schema.name.removeprefix("aten::") in MAKES_TENSORS

    return [schema for schema in torch._C._jit_get_all_schemas() if reads_metadata(schema)]


def arguments_of(schema, tensor: torch.Tensor) -> list | None:
    values = {"int": 0, "SymInt": 0, "bool": False, "number": 1, "float": 1.0, "Device": torch.device("musa")}
    found = []
    for argument in schema.arguments:
        kind = str(argument.type)
        if argument.kwarg_only or argument.has_default_value():
            break
        if kind == "Tensor":
            found.append(tensor)
        elif kind in values:
            found.append(values[kind])
        elif kind.startswith("Optional"):
            found.append(None)
        elif kind.startswith("List[") and "nt" in kind:
            sized = argument.name in ("size", "shape") and not tensor.is_nested
            found.append(list(tensor.shape) if sized else [0, 1])
        else:
            return None
    return found


def copied_calls(op: str) -> int:
    return next((row["count"] for row in torch.musa.ops.fallback_report() if row["op"] == op), 0)


def main() -> None:
    warnings.simplefilter("ignore")
    called = set()
    for layout, tensor in tensors():
        for schema in schemas():
            arguments = arguments_of(schema, tensor)
            if arguments is None:
                continue
            op = schema.name + f".{schema.overload_name}" * bool(schema.overload_name)
            packet = getattr(torch.ops.aten, schema.name.split("::")[1])
            before = copied_calls(op)
            try:
                with torch.no_grad():
                    getattr(packet, schema.overload_name or "default")(*arguments)
                called.add(op)
            except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, AttributeError):
                continue  # torch has no such kernel for this layout, or the arguments do not fit
            finally:
                if copied_calls(op) != before and op not in READS_DATA:
                    print(f"{op} of a {layout} tensor", flush=True)
    print(f"{len(called)} operators")


if __name__ == "__main__":
    main()
