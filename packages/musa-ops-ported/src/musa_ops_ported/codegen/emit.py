# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Emits C++ for the operators of a catalog."""

from __future__ import annotations

from collections.abc import Iterable

from torchgen.api import meta, structured
from torchgen.api.translate import translate
from torchgen.api.types import DispatcherSignature, NativeSignature
from torchgen.context import native_function_manager
from torchgen.model import DeviceCheckType, NativeFunction, NativeFunctionsGroup, SchemaKind

from .catalog import Operator

HEADER = """// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Generated from ops.yaml and the installed torch. Do not edit.
"""


# Structured operators for which Outputs::set_up_plain is valid, and those of them that allow numbers.
NUMBERS_ALLOWED = frozenset(("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor"))
PLAIN = NUMBERS_ALLOWED | {
    "neg", "sqrt", "rsqrt", "reciprocal", "sigmoid", "exp", "exp2", "expm1", "log", "log2", "log10",
    "log1p", "sin", "cos", "tan", "tanh", "erf", "erfc", "ceil", "floor", "trunc", "round", "gelu",
    "silu", "maximum", "minimum", "gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward",
    "addcmul", "addcdiv", "lerp.Scalar",
}  # fmt: skip
SIGNATURE_COST = 3  # of a new signature, relative to a kernel with a known signature


def identifier(function: NativeFunction) -> str:
    """Returns a C++ identifier: add__Tensor for add_.Tensor."""
    return function.func.name.unambiguous_name()


def kernel_name(operator: Operator) -> str:
    """Returns the name of the function in the kernel file."""
    return identifier(operator.native.functional if operator.structured else operator.native)


def declaration(operator: Operator) -> str:
    """Returns the declaration of a function that a kernel file defines."""
    name = kernel_name(operator)
    if not operator.structured:
        with native_function_manager(operator.native):
            return NativeSignature(operator.native.func, symint=False).decl(name=name) + ";"
    group = operator.native
    with native_function_manager(group.out):
        arguments = [argument.decl() for argument in structured.impl_arguments(group)]
    if group.out.structured_inherits is not None:
        arguments.insert(0, f"at::{group.out.structured_inherits}& iter")
    return f"void {name}({', '.join(arguments)});"


def headers(operators: Iterable[Operator]) -> list[str]:
    roots = sorted({form.root_name for operator in operators for form in operator.forms()})
    return [f"#include <ATen/ops/{root}_native.h>" for root in roots]


def header_name(source: str) -> str:
    """Returns the name of the header of a kernel file."""
    return f"kernels/{source.removesuffix('.mu')}.h"


def kernels_header(operators: list[Operator]) -> str:
    """Returns the header of a kernel file, which declares its functions for these operators.

    Each kernel file has a header of its own, so that a new operator compiles one kernel file again.
    """
    lines = [
        HEADER + "#pragma once",
        "",
        "#include <ATen/core/Reduction.h>",
        "#include <ATen/core/Tensor.h>",
        "#include <ATen/TensorIterator.h>",
        "#include <ATen/TensorMeta.h>",
        "",
    ]
    lines += ["namespace musa_ops_ported {", ""]
    lines += [declaration(operator) for operator in operators if operator.way == "kernel"]
    return "\n".join([*lines, "", "} // namespace musa_ops_ported", ""])


def shards(operators: list[Operator], count: int) -> list[list[Operator]]:
    """Splits the operators into ``count`` lists of about equal compile time.

    Most of the time to compile a registration goes to its C++ signature, once per file, so operators of
    equal signatures are put into the same file.
    """
    types = {operator.name: signatures(operator) for operator in operators}
    ordered = sorted(operators, key=lambda operator: sorted(types[operator.name]))
    costs, before = [], set()
    for operator in ordered:
        now = types[operator.name]
        costs.append(len(now) + SIGNATURE_COST * len(now - before))
        before = now
    total, done, result = sum(costs), 0, [[] for _ in range(count)]
    for operator, cost in zip(ordered, costs):
        result[min(count - 1, done * count // total)].append(operator)
        done += cost
    return result


def signatures(operator: Operator) -> set[str]:
    """Returns the types of the forms, and whether they have a predicate."""
    types = set()
    for form in operator.forms():
        with native_function_manager(form):
            types.add(f"{_signature(form).type()} {operator.when is not None}")
    return types


def registration(operators: list[Operator], shard: int) -> str:
    """Returns a file that registers these operators."""
    lines = [HEADER + '#include "registration.h"', ""]
    sources = sorted({operator.source for operator in operators if operator.way == "kernel"})
    lines += [f'#include "{header_name(source)}"' for source in sources]
    lines += headers(operator for operator in operators if operator.way != "kernel" or operator.structured)
    lines += ["", "namespace musa_ops_ported {", "namespace {", ""]
    for operator in operators:
        lines += _structured(operator) if operator.structured else _alone(operator)
    for operator in operators:
        if operator.when:
            lines += [line for form in operator.forms() for line in _predicate(operator, form)]
    lines += ["} // namespace", "", f"void declare_{shard}(Pack& pack) {{"]
    for operator in operators:
        for form in operator.forms():
            name = identifier(form)
            predicate = f", TORCH_FN(serves_{name})" if operator.when else ""
            lines.append(f'  pack.impl("aten::{form.func.name}", TORCH_FN(call_{name}){predicate});')
    return "\n".join([*lines, "}", "", "} // namespace musa_ops_ported", ""])


def pack_source(shards: int) -> str:
    """Returns the file that calls all registration files."""
    lines = [HEADER + '#include "registration.h"', "", "namespace musa_ops_ported {", ""]
    lines += [f"void declare_{shard}(Pack& pack);" for shard in range(shards)]
    lines += ["", "void declare_operators(Pack& pack) {"]
    lines += [f"  declare_{shard}(pack);" for shard in range(shards)]
    return "\n".join([*lines, "}", "", "} // namespace musa_ops_ported", ""])


def _predicate(operator: Operator, form: NativeFunction) -> list[str]:
    with native_function_manager(form):
        signature = _signature(form)
        arguments = ", ".join(argument.name for argument in signature.arguments())
        declared = ", ".join(argument.decl() for argument in signature.arguments())
        return [
            f"bool serves_{identifier(form)}({declared}) {{",
            f"  return {operator.when}({arguments});",
            "}",
            "",
        ]


def _signature(function: NativeFunction) -> DispatcherSignature:
    return DispatcherSignature.from_schema(function.func, symint=False)


def _on_entry(function: NativeFunction) -> list[str]:
    """Checks that operands are on one device, and makes that device current."""
    arguments = function.func.arguments
    tensors = [argument.name for argument in arguments.flat_all if argument.type.is_tensor_like()]
    if not tensors and any(argument.name == "device" for argument in arguments.flat_all):
        return ["  const DeviceGuard guard(with_index(device));"]
    out_first = [argument.name for argument in arguments.out]
    ordered = list(dict.fromkeys([*out_first, *tensors]))
    lines = []
    if function.device_check is DeviceCheckType.ExactSame and len(ordered) > 0:
        named = ", ".join(f'named("{name}", {name})' for name in ordered)
        lines.append(f'  check_same_device("{function.func.name}", {named});')
    return [*lines, f"  const DeviceGuard guard(device_of({', '.join(ordered)}));"]


def _alone(operator: Operator) -> list[str]:
    function = operator.native
    with native_function_manager(function):
        signature = _signature(function)
        kernel = (
            f"musa_ops_ported::{kernel_name(operator)}"
            if operator.way == "kernel"
            else f"at::native::{operator.torch_kernel}"
        )
        arguments = translate(
            signature.arguments(), NativeSignature(function.func, symint=False).arguments(), method=False
        )
        return [
            signature.defn(name=f"call_{identifier(function)}") + " {",
            *_on_entry(function),
            f"  return {kernel}({', '.join(argument.expr for argument in arguments)});",
            "}",
            "",
        ]


def _structured(operator: Operator) -> list[str]:
    group = operator.native
    of_torch = operator.way == "stub"
    base = (
        f"at::native::structured_{operator.torch_kernel}"
        if of_torch
        else f"at::meta::structured_{meta.name(group)}"
    )
    kind = f"Op_{identifier(group.functional)}"
    lines = [f"using {kind} = musa_runtime::Outputs<{base}, {len(group.out.func.returns)}>;", ""]
    for form in group.functions():
        lines += _form(operator, group, form, kind)
    return lines


def _form(operator: Operator, group: NativeFunctionsGroup, form: NativeFunction, kind: str) -> list[str]:
    kind_of_form = form.func.kind()
    with native_function_manager(form):
        signature = _signature(form)
        lines = [signature.defn(name=f"call_{identifier(form)}") + " {", *_on_entry(form), f"  {kind} op;"]
        outs = [argument.name for argument in form.func.arguments.out]
        if kind_of_form is SchemaKind.inplace:
            outs = ["self"]
            lines.append("  op.in_place = true;")
        if outs:
            lines.append(f"  op.given = {{{', '.join('&' + out for out in outs)}}};")
        context = list(signature.arguments())
        given = [
            argument.expr for argument in translate(context, structured.meta_arguments(group), method=False)
        ]
        call = f"op.meta({', '.join(given)});"
        if group.out.precomputed:
            lines.append(f"  const auto precomputed = {call}")
            given = _precomputed(group, given)
        elif str(group.functional.func.name) in PLAIN:
            lines += [f"  if (!({_plain(group)})) {{", f"    {call}", "  }"]
        else:
            lines.append(f"  {call}")
        count = len(group.out.func.returns)
        given += [f"op.maybe_get_output({i})" for i in range(count)]
        if operator.way == "kernel":
            if group.out.structured_inherits is not None:
                given.insert(0, "op")
            lines.append(f"  musa_ops_ported::{kernel_name(operator)}({', '.join(given)});")
        else:
            lines.append(f"  op.impl({', '.join(given)});")
        if kind_of_form is SchemaKind.functional:
            made = [f"std::move(op.made[{i}])" for i in range(count)]
            lines.append(f"  return {made[0]};" if count == 1 else f"  return {{{', '.join(made)}}};")
        else:
            lines.append("  op.finish();")
            lines.append(f"  return {outs[0]};" if count == 1 else f"  return {{{', '.join(outs)}}};")
        return [*lines, "}", ""]


def _plain(group: NativeFunctionsGroup) -> str:
    """Returns the condition under which the setup for plain tensors replaces the meta function."""
    arguments = group.functional.func.arguments.flat_non_out
    numbers = [f"is_real({one.name})" for one in arguments if str(one.type) == "Scalar"]
    tensors = ", ".join(one.name for one in arguments if str(one.type) == "Tensor")
    allowed = "true" if str(group.functional.func.name) in NUMBERS_ALLOWED else "false"
    return " && ".join([*numbers, f"op.set_up_plain<{allowed}>({tensors})"])


def _precomputed(group: NativeFunctionsGroup, given: list[str]) -> list[str]:
    """Returns the implementation's arguments if the meta function has precomputed some of them."""
    precomputed = group.out.precomputed
    names = [binding.name for binding in structured.meta_arguments(group)]
    result = []
    for name, expression in zip(names, given, strict=True):
        if name in precomputed.replace:
            result += [f"precomputed.{replacement.name}" for replacement in precomputed.replace[name]]
        else:
            result.append(expression)
    return result + [f"precomputed.{added.name}" for added in precomputed.add or []]
