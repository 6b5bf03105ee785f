# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs kernels in Triton's IR on the CPU: values are tensors of the CPU, pointers are addresses."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy
import torch
from triton._C.libtriton import interpreter as memory

from . import ttir

_BITS = {torch.int8: 8, torch.int16: 16, torch.int32: 32, torch.int64: 64}
# Dtypes that numpy lacks, or has with other properties.
_AS_INTEGERS = {torch.bfloat16: torch.int16, torch.bool: torch.int8}


class Interpreter:
    """One program of a kernel's grid.

    Args:
        position (tuple of int): the indices of the program.
        size (tuple of int): size of the grid.
    """

    def __init__(self, position: tuple[int, int, int], size: tuple[int, int, int]) -> None:
        self._position, self._size = position, size

    def run(self, kernel: ttir.Kernel, arguments: list[torch.Tensor]) -> None:
        names = [argument.name for argument in kernel.arguments]
        self._run(kernel.body, dict(zip(names, arguments, strict=True)))

    def _run(self, body: list[ttir.Operation], values: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """Runs the body, and returns the operands of the operation that ends it."""
        for operation in body:
            operands = [values[name] for name in operation.operands]
            if operation.name in ("scf.yield", "tt.return", "tt.reduce.return", "tt.scan.return"):
                return operands
            own = getattr(self, "_" + operation.name.replace(".", "_"), None)
            if own is not None:
                results = own(operation, operands, values)
            elif operation.name in _ELEMENTWISE:
                results = [_ELEMENTWISE[operation.name](*operands)]
            elif operation.name in _CONVERSIONS:
                results = [_CONVERSIONS[operation.name](operands[0], operation.types[-1].dtype)]
            else:
                raise NotImplementedError(f"the stub has no {operation.name}")
            values.update(zip(operation.results, results, strict=True))
        return []

    def _tt_get_program_id(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        return [torch.tensor(self._position["xyz".index(operation.text.strip())], dtype=torch.int32)]

    def _tt_get_num_programs(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        return [torch.tensor(self._size["xyz".index(operation.text.strip())], dtype=torch.int32)]

    def _arith_constant(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        text = operation.text.strip()
        kind = operation.types[-1] if operation.types else ttir.Type((), "i1")  # `true` is printed alone
        text = text.removeprefix("dense<").removesuffix(">")
        return [torch.full(kind.shape, _number(text, kind.dtype), dtype=kind.dtype)]

    def _tt_make_range(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        end, start = (int(number) for number in re.findall(r"= (-?\d+)", operation.attributes))
        return [torch.arange(start, end, dtype=torch.int32)]

    def _tt_splat(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        return [operands[0].expand(operation.types[-1].shape)]

    _tt_broadcast = _tt_splat

    def _tt_reshape(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        return [operands[0].reshape(operation.types[-1].shape)]

    def _tt_expand_dims(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        return [operands[0].unsqueeze(_axis(operation))]

    def _tt_addptr(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        return [operands[0] + operands[1].to(torch.int64) * operation.types[0].pointee.itemsize]

    def _tt_bitcast(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        return [operands[0].view(operation.types[-1].dtype)]

    def _arith_cmpi(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        relation = operation.text.split(",")[0].strip()
        if relation[0] == "u":
            operands = [_unsigned(operand) for operand in operands]
            relation = f"s{relation[1:]}"
        return [_RELATIONS[relation.removeprefix("s")](*operands)]

    def _arith_cmpf(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        relation = operation.text.split(",")[0].strip()
        result = _RELATIONS[relation[1:]](*operands)
        unordered = operands[0].isnan() | operands[1].isnan()
        return [result | unordered if relation[0] == "u" else result & ~unordered]

    def _tt_load(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        addresses, *rest = operands
        dtype = operation.types[0].pointee
        mask = rest[0] if rest else torch.ones_like(addresses, dtype=torch.bool)
        other = rest[1] if len(rest) > 1 else torch.zeros(addresses.shape, dtype=dtype)
        stored = _to_numpy(other.expand(addresses.shape))
        loaded = memory.load(_pointers(addresses), _flat(mask), stored.reshape(-1), stored.dtype)
        return [torch.from_numpy(loaded).view(dtype).reshape(addresses.shape)]

    def _tt_store(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        addresses, value, *rest = operands
        mask = rest[0] if rest else torch.ones_like(addresses, dtype=torch.bool)
        memory.store(_pointers(addresses), _to_numpy(value.expand(addresses.shape)).reshape(-1), _flat(mask))
        return []

    def _tt_assert(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        if not operands[0].all():
            raise AssertionError("an assertion of the kernel failed")
        return []

    def _tt_extern_elementwise(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        symbol = re.search(r'symbol = "__nv_(\w+)"', operation.attributes)[1]
        single = operands[0].dtype == torch.float32 and symbol not in _LIBDEVICE
        name = symbol.removesuffix("f") if single else symbol
        if name not in _LIBDEVICE:
            raise NotImplementedError(f"the stub has no function {symbol!r} of libdevice")
        return [_LIBDEVICE[name](*operands)]

    def _scf_for(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        first, last, step, *carried = operands
        [region] = operation.regions
        for index in range(int(first), int(last), int(step)):
            number = torch.tensor(index, dtype=first.dtype)
            scope = {**values, **dict(zip(region.arguments, [number, *carried], strict=True))}
            carried = self._run(region.body, scope)
        return carried

    def _scf_if(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        chosen = operation.regions[:1] if operands[0] else operation.regions[1:]
        return self._run(chosen[0].body, dict(values)) if chosen else []

    def _tt_reduce(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        axis = _axis(operation)
        while (size := operands[0].shape[axis]) > 1:  # a power of two
            halves = [operand.split(size // 2, axis) for operand in operands]
            operands = self._combine(operation, [h[0] for h in halves], [h[1] for h in halves], values)
        return [operand.squeeze(axis) for operand in operands]

    def _tt_scan(self, operation: Any, operands: Any, values: Any) -> list[torch.Tensor]:
        axis = _axis(operation)
        reverse = "reverse = true" in operation.attributes
        slices = list(zip(*(operand.split(1, axis) for operand in operands), strict=True))
        slices = slices[::-1] if reverse else slices
        totals = [list(slices[0])]
        for each in slices[1:]:
            totals.append(self._combine(operation, totals[-1], list(each), values))
        totals = totals[::-1] if reverse else totals
        return [torch.cat(each, axis) for each in zip(*totals, strict=True)]

    def _combine(self, operation: Any, left: Any, right: Any, values: Any) -> list[torch.Tensor]:
        # The region is for scalars. Here it computes with all rows at once.
        [region] = operation.regions
        constants = {name: value for name, value in values.items() if value.dim() == 0}
        return self._run(region.body, constants | dict(zip(region.arguments, [*left, *right], strict=True)))


def _number(text: str, dtype: torch.dtype) -> float | int | bool:
    if dtype == torch.bool:
        return text == "true"
    if not dtype.is_floating_point:
        return int(text, 0)
    if text.startswith("0x"):  # the bits
        octets = list(int(text, 16).to_bytes(dtype.itemsize, "little"))
        return torch.tensor(octets, dtype=torch.uint8).view(dtype).item()
    return float(text)


def _axis(operation: ttir.Operation) -> int:
    return int(re.search(r"axis = (\d+)", operation.attributes)[1])


def _pointers(addresses: torch.Tensor) -> numpy.ndarray:
    return addresses.contiguous().numpy().astype(numpy.uint64).reshape(-1)


def _flat(mask: torch.Tensor) -> numpy.ndarray:
    return mask.contiguous().numpy().reshape(-1)


def _to_numpy(value: torch.Tensor) -> numpy.ndarray:
    return value.contiguous().view(_AS_INTEGERS.get(value.dtype, value.dtype)).numpy()


def _unsigned(value: torch.Tensor) -> torch.Tensor:
    """64-bit integers that order like the unsigned values; narrower ones have the unsigned value."""
    if value.dtype == torch.bool:
        return value.to(torch.int64)
    if value.dtype == torch.int64:
        return value ^ torch.iinfo(torch.int64).min
    return value.to(torch.int64) & ((1 << _BITS[value.dtype]) - 1)


def _widen(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return _unsigned(value).to(dtype)


def _truncate(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return (value & 1).to(dtype) if dtype == torch.bool else value.to(dtype)


def _sign_extend(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return -value.to(dtype) if value.dtype == torch.bool else value.to(dtype)


def _shift_unsigned(value: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    bits = _BITS[value.dtype]
    if bits < 64:
        return (_unsigned(value) >> by.to(torch.int64)).to(value.dtype)
    kept = torch.where(by == 0, -1, (torch.ones_like(by) << (64 - by.clamp(min=1))) - 1)
    return (value >> by) & kept


def _high_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if left.dtype != torch.int32:
        raise NotImplementedError("the stub has tt.mulhiui of 32 bits only")
    return ((_unsigned(left) * _unsigned(right)) >> 32).to(torch.int32)  # bits above 63 are cut off


def _divide(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.div(left, right, rounding_mode="trunc")


_RELATIONS: dict[str, Callable] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_ELEMENTWISE: dict[str, Callable] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _divide,
    "arith.remsi": torch.fmod,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.shli": operator.lshift,
    "arith.shrsi": operator.rshift,
    "arith.shrui": _shift_unsigned,
    "arith.minsi": torch.minimum,
    "arith.maxsi": torch.maximum,
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": operator.mul,
    "arith.divf": operator.truediv,
    "arith.negf": operator.neg,
    "arith.minimumf": torch.minimum,
    "arith.maximumf": torch.maximum,
    "arith.minnumf": torch.fmin,
    "arith.maxnumf": torch.fmax,
    "arith.select": torch.where,
    "math.absf": torch.abs,
    "math.absi": torch.abs,
    "math.ceil": torch.ceil,
    "math.cos": torch.cos,
    "math.erf": torch.erf,
    "math.exp": torch.exp,
    "math.exp2": torch.exp2,
    "math.floor": torch.floor,
    "math.fma": lambda a, b, c: a * b + c,
    "math.log": torch.log,
    "math.log2": torch.log2,
    "math.rsqrt": torch.rsqrt,
    "math.sin": torch.sin,
    "math.sqrt": torch.sqrt,
    "tt.mulhiui": _high_product,
    "tt.precise_divf": operator.truediv,
    "tt.precise_sqrt": torch.sqrt,
}
_CONVERSIONS: dict[str, Callable] = {
    "arith.extf": torch.Tensor.to,
    "arith.truncf": torch.Tensor.to,
    "arith.sitofp": _sign_extend,
    "arith.fptosi": torch.Tensor.to,
    "arith.extsi": _sign_extend,
    "arith.index_cast": torch.Tensor.to,
    "arith.extui": _widen,
    "arith.uitofp": _widen,
    "arith.trunci": _truncate,
}
_LIBDEVICE: dict[str, Callable] = {
    "ceil": torch.ceil,
    "cos": torch.cos,
    "erf": torch.erf,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "fabs": torch.abs,
    "floor": torch.floor,
    "log": torch.log,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "pow": torch.pow,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "sqrt": torch.sqrt,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "trunc": torch.trunc,
}
