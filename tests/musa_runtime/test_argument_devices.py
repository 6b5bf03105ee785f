# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Arguments that accept host tensors together with musa tensors, by torch.cuda's rule.

CUDA kernels cannot run here, so the rule is derived from torch's published metadata, for each argument of
each ATen operator that the samples of torch's operator database reach:

1. A written argument (out=, the tensor of an in-place operator) is never in host memory.
2. If native_functions.yaml (packaged with torchgen) has the device check `ExactSame`, all tensors are on one
   device.
3. An operator of torch's TensorIterator with two or more operands accepts one 0-dim host tensor.
4. `VALUES` and `HOST_ARGUMENTS` list the operators with special rules.

Fake tensors, torch's model of devices, are the second source: `test_the_rule_agrees_with_fake_tensors`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import pathlib
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tests.conformance.operators import OPS
from tests.harness.policies import POLICIES, policy, sampled

pytestmark = pytest.mark.once

SAMPLE_STEP = 4
SAMPLES_PER_OPERATOR = 2

# Arguments whose 0-dim host tensors the operators read on the host or move to the device.
VALUES = {
    ("_index_put_impl", "values"),
    ("binary_cross_entropy", "weight"),
    ("fill", "value"),
    ("index_fill", "value"),
    ("masked_fill", "value"),
    *(("where", name) for name in ("condition", "self", "other")),
    *((op, name) for op in ("floor_divide", "rsub", "lshift", "rshift") for name in ("self", "other")),
    *((f"logical_{op}", name) for op in ("and", "or", "xor") for name in ("self", "other")),
}
# Arguments that may be host tensors of any shape.
HOST_ARGUMENTS = {
    ("_index_put_impl", "indices"),
    ("index", "indices"),
    ("bernoulli", "p"),
    ("copy", "self"),
    ("copy", "src"),
    ("is_same_size", "other"),
    ("is_same_size", "self"),
    ("is_set_to", "self"),
    ("is_set_to", "tensor"),
    ("_pack_padded_sequence", "lengths"),
}
# TensorIterator operators without allow_cpu_scalars: torch's host code, which the ported pack uses, raises.
NO_NUMBERS = {"addcdiv", "clamp", "mse_loss"}
# Differences from the rule, by operator and argument.
DIFFERENCES = {
    ("clamp_max", "self"): "CUDA accepts a number for the out= form alone; here it depends on the provider",
    ("clamp_max", "max"): "as above",
    ("clamp_min", "self"): "as above",
    ("clamp_min", "min"): "as above",
    ("pow", "self"): "pow.Tensor_Scalar_out has the row of pow.Tensor_Tensor",
    ("batch_norm_backward", "reserve"): "kept for cuDNN alone; no kernel here reads it",
    ("batch_norm_backward", "running_mean"): "not read while training",
    ("batch_norm_backward", "running_var"): "not read while training",
    ("native_batch_norm_backward", "running_mean"): "not read while training",
    ("native_batch_norm_backward", "running_var"): "not read while training",
    ("convolution_backward", "input"): "not read unless the gradient of the filter is requested",
    ("log_sigmoid_backward", "buffer"): "only torch's CPU kernel reads it",
    ("log_sigmoid_forward", "buffer"): "only torch's CPU kernel writes it",
}
# Composed operators that read their operands on the host and run on the device of `out`, on CUDA too.
OUT_DECIDES = {"linspace", "logspace"}
# Differences between fake tensors and torch's CUDA kernels.
FAKE_TENSORS_REFUSE = {
    ("bernoulli", "p"): "the CUDA kernel moves the probabilities to the device",
    ("copy", "self"): "the fake rule of copy_ is that of the functional form",
    ("copy", "src"): "as above",
}
FAKE_TENSORS_ACCEPT = {
    ("index", "self"): "the fake rule takes the device of the indexed tensor",
    ("_index_put_impl", "self"): "as above",
}
NO_FAKE_DEVICE_CHECK = {  # own fake kernels without a device check; the CUDA kernels have ExactSame
    "_embedding_bag",
    "_linalg_solve_ex",
    "batch_norm_backward",
    "convolution_backward",
    "native_batch_norm_backward",
    "native_dropout_backward",
    "native_layer_norm_backward",
}
# A pattern in errors about devices.
DEVICE_ERROR = re.compile(r"device|CPU scalars|on the CPU|on cpu")


@dataclass
class Call:
    """An ATen call that was made on the CPU."""

    func: Any
    args: tuple
    kwargs: dict
    tensors: list[tuple[str, int | None]] = field(default_factory=list)  # (argument, place in its list)


class Recorder(TorchDispatchMode):
    """Records the first call of each ATen overload for each set of tensor arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[tuple, Call] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = list(tensor_arguments(func, args, kwargs))
        key = (func, tuple(tensors))
        if key not in self.calls and len(tensors) > 1 and func.namespace == "aten":
            self.calls[key] = Call(func, *cloned((args, kwargs)), tensors)
        return func(*args, **kwargs)


def cloned(tree: Any) -> Any:
    return tree_map(lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf, tree)


def values_of(func, args: tuple, kwargs: dict) -> dict[str, Any]:
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args)), **kwargs}


def tensor_arguments(func, args: tuple, kwargs: dict):
    for name, value in values_of(func, args, kwargs).items():
        if isinstance(value, torch.Tensor):
            yield name, None
        elif isinstance(value, (list, tuple)):
            first = next((i for i, each in enumerate(value) if isinstance(each, torch.Tensor)), None)
            if first is not None:
                yield name, first


def record(ops: list) -> list[Call]:
    """Returns the ATen calls that the samples of these operators make."""
    recorder = Recorder()
    for op in ops:
        supported = op.supported_dtypes("cpu")
        dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in supported), None)
        if dtype is None:
            continue
        differentiable = op.supports_autograd and dtype.is_floating_point
        samples = op.sample_inputs("cpu", dtype, requires_grad=differentiable)
        for sample in itertools.islice(samples, SAMPLES_PER_OPERATOR):
            with recorder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = op(sample.input, *sample.args, **sample.kwargs)
                differentiate(result)
            input, args, kwargs = cloned((sample.input, sample.args, sample.kwargs))
            with recorder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if op.supports_out and isinstance(result, torch.Tensor):
                    op(input, *args, **kwargs, out=result.detach().clone())
                if op.inplace_variant is not None:
                    with contextlib.suppress(RuntimeError):  # the result may not fit the input
                        op.inplace_variant(input, *args, **kwargs)
    return list(recorder.calls.values())


def differentiate(result: Any) -> None:
    outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    strided = [leaf for leaf in outputs if leaf.layout == torch.strided]
    if strided:
        torch.autograd.backward(strided, [torch.ones_like(leaf) for leaf in strided])


@functools.cache
def native_functions() -> dict[str, Any]:
    import torchgen
    from torchgen.gen import parse_native_yaml
    from torchgen.model import DispatchKey

    packaged = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native"
    parsed = parse_native_yaml(str(packaged / "native_functions.yaml"), str(packaged / "tags.yaml"))
    by_name = {function.func.name: function for function in parsed.native_functions}

    def cuda(function) -> bool:
        index = parsed.backend_indices[DispatchKey.CUDA]
        delegate = function.structured_delegate
        return index.has_kernel(function) or (delegate is not None and index.has_kernel(by_name[delegate]))

    return {
        str(name): (function, cuda(function), by_name.get(function.structured_delegate, function))
        for name, function in by_name.items()
    }


def accepts(call: Call, argument: str, tensor: torch.Tensor) -> bool | None:
    """Whether torch.cuda accepts a host tensor as this argument; None if the operator has no CUDA kernel."""
    from torchgen.model import DeviceCheckType

    entry = native_functions().get(schema_name(call.func))
    if entry is None:
        return None
    function, has_cuda_kernel, structured = entry
    written = {
        each.name for each in call.func._schema.arguments if each.alias_info and each.alias_info.is_write
    }
    key = (str(function.func.name.name.base), argument)
    if key in HOST_ARGUMENTS:
        return True
    if not has_cuda_kernel:
        return None
    if argument in written:
        return False
    if function.device_check is DeviceCheckType.ExactSame:
        return False
    if tensor.dim() > 0:
        return False
    operands = [name for name, _ in call.tensors if name not in written or name == "self"]
    iterates = structured.structured_inherits is not None and len(operands) > 1
    return key in VALUES or (iterates and key[0] not in {*NO_NUMBERS, "index"})


def schema_name(func) -> str:
    """Returns the name in native_functions.yaml."""
    overload = "" if func._overloadname == "default" else "." + func._overloadname
    return func._schema.name.removeprefix("aten::") + overload


def on_devices(call: Call, place: tuple[str, int | None], host: torch.Tensor, convert) -> tuple[tuple, dict]:
    """Returns the call's arguments after `convert`, except the tensor in `place`, which becomes `host`."""
    schema = call.func._schema.arguments
    values = values_of(call.func, call.args, call.kwargs)

    def placed(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return host if place == (name, None) else convert(value)
        if isinstance(value, (list, tuple)) and any(isinstance(each, torch.Tensor) for each in value):
            return [
                (host if place == (name, i) else convert(each)) if isinstance(each, torch.Tensor) else each
                for i, each in enumerate(value)
            ]
        return value

    converted = {name: placed(name, value) for name, value in values.items()}
    positional = [argument.name for argument in schema if not argument.kwarg_only and argument.name in values]
    return (
        tuple(converted[name] for name in positional),
        {name: value for name, value in converted.items() if name not in positional},
    )


def error_of(function, args: tuple, kwargs: dict) -> Exception | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError, TypeError, AssertionError) as error:
            return error
    return None


def hosts(call: Call, place: tuple[str, int | None]) -> list[torch.Tensor]:
    """Returns the tensor of the call, and its first element as a 0-dim tensor."""
    name, index = place
    value = values_of(call.func, call.args, call.kwargs)[name]
    tensor = value if index is None else value[index]
    if tensor.layout != torch.strided or tensor.is_quantized:
        return []
    forms = [tensor.clone()]
    if tensor.dim() > 0 and tensor.numel() > 0:
        forms.append(tensor.reshape(-1)[0].clone())
    return forms


def to_musa(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("musa")


def others_on_device(call: Call, place: tuple[str, int | None]) -> bool:
    values = values_of(call.func, call.args, call.kwargs)
    for name, value in values.items():
        each = value if isinstance(value, (list, tuple)) else [value]
        for i, leaf in enumerate(each):
            where = (name, i if isinstance(value, (list, tuple)) else None)
            if isinstance(leaf, torch.Tensor) and where != place:
                return True
    return False


@pytest.fixture(scope="module")
def calls(request) -> list[Call]:
    return record(sampled(OPS, SAMPLE_STEP, request.config.getoption("--full")))


@pytest.mark.parametrize("name", POLICIES)
def test_host_tensors_are_accepted_where_cuda_accepts_them_and_refused_elsewhere(musa, calls, name):
    counts: Counter[str] = Counter()
    problems = []
    with policy(name):
        for call in calls:
            if error := error_of(call.func, *on_devices(call, ("", None), None, to_musa)):
                counts["not run on musa at all"] += 1
                if isinstance(error, (RuntimeError, NotImplementedError)) and "device" in str(error):
                    problems.append(f"{call.func}: all operands on musa: {error}")
                continue
            for place in call.tensors:
                for host in hosts(call, place):
                    if not others_on_device(call, place):
                        continue
                    verdict = accepts(call, place[0], host)
                    shape = "0-dim" if host.dim() == 0 else "dimensioned"
                    if (call.func._schema.name.removeprefix("aten::").rstrip("_"), place[0]) in DIFFERENCES:
                        counts["difference with a reason"] += 1
                        continue
                    if verdict is None:
                        counts["judged by the operators that it is composed of"] += 1
                        continue
                    error = error_of(call.func, *on_devices(call, place, host.clone(), to_musa))
                    if verdict:
                        on_cpu = error_of(call.func, *on_devices(call, place, host.clone(), torch.clone))
                        if error is not None and on_cpu is None:
                            problems.append(f"{call.func} {place[0]} {shape}: refused: {str(error)[:160]}")
                    elif error is None:
                        problems.append(f"{call.func} {place[0]} {shape}: accepted")
                    elif host.dim() > 0 and not DEVICE_ERROR.search(str(error)):
                        # The error may be about the shape, because a 0-dim tensor replaces another one.
                        problems.append(f"{call.func} {place[0]} {shape}: {str(error)[:160]}")
                    counts[f"{shape} {'accepted' if verdict else 'refused'}"] += 1
    print(f"\n{name}: {len(calls)} calls of {len({c.func for c in calls})} overloads: {dict(counts)}")
    assert counts["dimensioned refused"] > 50 and counts["0-dim accepted"] > 5
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(sorted(set(problems)))


def empty_as(tensor: torch.Tensor, device: str = "cuda") -> torch.Tensor:
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)


def test_the_rule_agrees_with_fake_tensors(calls, full):
    from torch._subclasses.fake_tensor import FakeTensorMode

    counts: Counter[str] = Counter()
    problems = []
    for call in calls:
        for place in call.tensors:
            host = next(iter(hosts(call, place)), None)
            if host is None or host.dim() == 0 or not others_on_device(call, place):
                continue
            verdict = accepts(call, place[0], host)
            if verdict is None:
                continue
            with FakeTensorMode():
                try:
                    arguments = on_devices(call, place, empty_as(host, "cpu"), empty_as)
                except RuntimeError:
                    continue  # a layout other than strided
                error = error_of(call.func, *arguments)
            refuses = error is not None and "device" in str(error)
            if error is not None and not refuses:
                counts["no verdict of fake tensors"] += 1
                continue
            function, _, _ = native_functions()[schema_name(call.func)]
            key = (str(function.func.name.name.base), place[0])
            excused = FAKE_TENSORS_REFUSE if refuses else FAKE_TENSORS_ACCEPT
            if verdict == (not refuses):
                counts["agree"] += 1
            elif key in excused or (key[0] in NO_FAKE_DEVICE_CHECK and not refuses):
                counts["differ with a reason"] += 1
            else:
                verb = "refuse" if refuses else "accept"
                problems.append(f"{call.func} {place[0]}: fake tensors {verb} {str(error)[:80]}")
    print(f"\n{dict(counts)}")
    assert counts["agree"] > (500 if full else 100)
    assert not problems, "\n".join(sorted(set(problems)))


@pytest.mark.parametrize("name", POLICIES)
def test_out_is_never_in_host_memory(musa, full, name):
    counts: Counter[str] = Counter()
    problems = []
    with policy(name):
        cases = [op for op in OPS if op.supports_out and op.name not in OUT_DECIDES]
        for op in sampled(cases, SAMPLE_STEP, full):
            dtype = next((d for d in (torch.float32, torch.int64) if d in op.supported_dtypes("cpu")), None)
            sample = dtype and next(iter(op.sample_inputs("cpu", dtype, requires_grad=False)), None)
            if not sample:
                continue
            expected = op(sample.input, *sample.args, **sample.kwargs)
            if not isinstance(expected, torch.Tensor):
                counts["several results"] += 1
                continue
            moved = sample.transform(lambda leaf: leaf.to("musa") if isinstance(leaf, torch.Tensor) else leaf)
            if not any(isinstance(leaf, torch.Tensor) for leaf in (moved.input, *moved.args)):
                continue
            for out in (torch.empty_like(expected), torch.empty((), dtype=expected.dtype)):
                error = error_of(
                    functools.partial(op, moved.input, *moved.args, **{**moved.kwargs, "out": out}), (), {}
                )
                counts["refused" if error else "accepted"] += 1
                if error is None:
                    problems.append(f"{op.formatted_name} out of {out.dim()} dimensions")
    print(f"\n{name}: {dict(counts)}")
    assert counts["refused"] > 10
    assert not problems, "\n".join(problems)


def test_host_tensors_are_not_indexed_by_device_tensors(musa):
    x, index = torch.randn(6, 4), torch.tensor([0, 2], device="musa")
    with pytest.raises(RuntimeError, match=r"indices should be either on cpu or .* \(cpu\)"):
        x[index]
    with pytest.raises(RuntimeError, match=r"indices should be either on cpu"):
        x[index] = torch.zeros(2, 4)
    y = x.to("musa")
    torch.testing.assert_close(y[torch.tensor([0, 2])].cpu(), x[[0, 2]])
    y[torch.tensor([0, 2])] = torch.tensor(5.0)
    assert y[0].eq(5).all()


def test_only_one_cpu_scalar_is_accepted_beside_device_tensors(musa):
    number = torch.tensor(2.0)
    ones = torch.ones(2, device="musa")
    assert torch.addcmul(ones, ones, number).tolist() == [3, 3]
    for name in POLICIES:
        with policy(name), pytest.raises(RuntimeError, match="too many CPU scalars"):
            torch.addcmul(ones, number, number)
    assert torch.where(ones > 0, number, torch.tensor(1.0)).tolist() == [2, 2]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("op", ["_foreach_addcmul", "_foreach_addcdiv"])
def test_scalars_of_a_list_operator_are_in_host_memory(musa, op, name):
    function = getattr(torch, op)
    lists = [[torch.full((2,), float(k + i), device="musa") for i in range(2)] for k in (1, 2, 4)]
    scalars = torch.tensor([0.5, 2.0])
    with policy(name):
        results = function(*lists, scalars)
        with pytest.raises(RuntimeError, match="Expected scalars to be on CPU"):
            function(*lists, scalars.to("musa"))
    expected = function(*[[each.cpu() for each in tensors] for tensors in lists], scalars)
    for result, wanted in zip(results, expected):
        assert result.device.type == "musa"
        torch.testing.assert_close(result.cpu(), wanted)


@pytest.mark.parametrize("name", POLICIES)
def test_foreach_operators_accept_cpu_scalars_as_their_operators_do(musa, name):
    ones = [torch.ones(2, device="musa"), torch.ones(3, device="musa")]
    with policy(name):
        assert [each.tolist() for each in torch._foreach_mul(ones, torch.tensor(3.0))] == [[3, 3], [3, 3, 3]]
        added = torch._foreach_add(ones, [torch.tensor(1.0), torch.tensor(2.0)])
        assert [each.tolist() for each in added] == [[2, 2], [3, 3, 3]]
        with pytest.raises(RuntimeError, match="device"):
            torch._foreach_add(ones, [torch.ones(2), torch.ones(3)])


@pytest.mark.parametrize("name", POLICIES)
def test_nested_tensors_keep_their_sizes_in_host_memory(musa, name):
    with warnings.catch_warnings(), policy(name):
        warnings.simplefilter("ignore")
        parts = [torch.ones(2, 3, device="musa"), torch.full((1, 3), 2.0, device="musa", requires_grad=True)]
        nested = torch.nested.as_nested_tensor(parts)
        assert nested.device.type == "musa"
        assert nested._nested_tensor_size().device.type == "cpu"
        batch = torch.nested.as_nested_tensor(torch.ones(2, 3, 4, device="musa"))
        assert [each.shape for each in batch.unbind()] == [(3, 4), (3, 4)]
        padded = torch.nested.to_padded_tensor(nested * 3, 0.0)
        padded.sum().backward()
    assert parts[1].grad.tolist() == [[3, 3, 3]]
