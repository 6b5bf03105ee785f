# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""C++ kernels whose innermost loop does not repeat loads of the same element.

A row operation such as layer norm reads the row's mean and variance for each vector of the row. Inductor
writes these loads into the loop. The loop also stores results through a pointer of the same type, so the
compiler must assume that a store changes them, and computes all that depends on them, such as a division and
a square root, for each vector. Before the loop, they are loaded once.
"""

import dataclasses
import itertools

from torch._inductor.codegen.cpp import CppKernelProxy, CppTile2DKernel, CppVecKernel, LoopLevel
from torch._inductor.utils import DeferredLineBase
from torch.utils._sympy.symbol import SymT, free_symbol_is_type


@dataclasses.dataclass
class _Variable:
    name: str
    value: str
    declared: bool = False


class _Load(DeferredLineBase):
    """A line of a loop's body: reads the variable before the loop, or memory if there is no such variable."""

    def __init__(self, line, variable):
        super().__init__(line)
        self._variable = variable

    def __call__(self):
        variable = self._variable
        return self.line.replace(variable.value, variable.name) if variable.declared else self.line

    def _new_line(self, line):
        return _Load(line, self._variable)


@dataclasses.dataclass
class _Loop(LoopLevel):
    """An innermost loop, preceded by the variables that its body reads."""

    variables: list[_Variable] = dataclasses.field(default_factory=list)

    def lines(self):
        lines = super().lines()
        if lines is None or self.collapsed:  # OpenMP collapses nested loops with nothing between them
            return lines
        for variable in self.variables:
            variable.declared = True
        return [*dict.fromkeys(f"const auto {each.name} = {each.value};" for each in self.variables), *lines]


class _VectorKernel(CppVecKernel):
    """The body of a vectorised loop."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.variables = []  # of the loads that do not depend on the loop

    def load(self, name, index):
        before = len(self.loads._lines)
        value = super().load(name, index)
        if self._is_invariant(index) and len(self.loads._lines) == before + 1:  # not loaded earlier
            line = self.loads._lines[-1]
            variable = _Variable("", line.split(" = ", 1)[1].removesuffix(self.suffix))
            self.loads._lines[-1] = _Load(line, variable)
            self.variables.append(variable)
        return value

    def _is_invariant(self, index):
        index = self.rename_indexing(index)
        innermost = len(self.itervars) - 1
        return (
            innermost > 0
            and self.tiling_idx == innermost
            and self._load_mask is None
            and self.itervars[innermost] not in index.free_symbols
            and not free_symbol_is_type(index, SymT.TMP)
        )


class _TileKernel(CppTile2DKernel, _VectorKernel):
    """The body of two vectorised loops. torch requires that its class is derived from the one above."""

    def _is_invariant(self, index):
        return False  # a load may depend on a loop within the innermost one


class KernelProxy(CppKernelProxy):
    """The kernels of a loop nest: vectors, and the rest of the innermost dimension."""

    vec_kernel_cls = _VectorKernel
    tile2d_kernel_cls = _TileKernel

    def codegen_functions(self, *arguments):
        super().codegen_functions(*arguments)
        vectors = [kernel for kernel in self.kernels if isinstance(kernel, _VectorKernel)]
        variables = [variable for kernel in vectors for variable in kernel.variables]
        if not variables:
            return
        # The loops of a kernel may share a scope, so the names are counted for all of them.
        numbers = self.kernel_group.__dict__.setdefault("musa_invariants", itertools.count())
        names = {}
        for variable in variables:
            if variable.value not in names:
                names[variable.value] = f"invariant{next(numbers)}"
            variable.name = names[variable.value]
        loop = self.loop_nest.loops[-1]
        fields = {each.name: getattr(loop, each.name) for each in dataclasses.fields(LoopLevel)}
        self.loop_nest.loops[-1] = _Loop(**fields, variables=variables)
