# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa has every public name of torch.cuda, in its own spelling, or a recorded reason excuses it."""

import importlib
import types

import pytest
import torch

from tests.harness.subprocesses import run_code
from tests.torch_musa.cuda_names import compare, excuses, names_of, spelled

pytestmark = pytest.mark.once


def test_every_public_name_is_there_or_excused(capsys):
    result = compare(torch.cuda, torch.musa, excuses())
    with capsys.disabled():
        print(f"\n{result.counts()}")
    assert result.missing == []
    assert result.stale == []
    assert len(result.present) >= 190


def test_the_walk_finds_functions_classes_and_submodules_but_not_imports():
    names = set(names_of(torch.cuda))
    assert {"Stream", "memory_allocated", "OutOfMemoryError", "default_generators", "FloatTensor"} <= names
    assert {"comm", "comm.scatter", "memory.mem_get_info", "sparse.FloatTensor", "nvtx.range_push"} <= names
    assert not {"os", "Any", "torch", "warnings", "TYPE_CHECKING", "random.Tensor", "memory.pickle"} & names


@pytest.mark.parametrize("name", ["comm", "memory", "random", "sparse", "streams", "parallel", "_utils"])
def test_submodules_can_be_imported(name):
    module = importlib.import_module(f"torch.musa.{name}")
    assert module is getattr(torch.musa, name)


def test_submodules_are_loaded_at_their_first_use():
    code = """
    import sys, torch
    late = ("comm", "parallel", "sparse", "telemetry", "legacy_types")
    print([name for name in late if f"musa_runtime.{name}" in sys.modules])
    print("comm" in dir(torch.musa), torch.musa.comm is sys.modules["musa_runtime.comm"])
    import torch.musa.parallel
    print(torch.musa.parallel is sys.modules["musa_runtime.parallel"], hasattr(torch.musa, "nothing"))
    """
    assert run_code(code).splitlines() == ["[]", "True True", "True False"]


def test_public_submodules_of_cuda_that_musa_has_can_be_imported():
    for name in names_of(torch.cuda):
        mine = getattr(torch.musa, spelled(name), None) if "." not in name else None
        if isinstance(mine, types.ModuleType):
            assert importlib.import_module(f"torch.musa.{spelled(name)}") is mine


@pytest.mark.parametrize(
    "cuda, musa",
    [
        ("cudart", "musart"),
        ("CUDAGraph", "MUSAGraph"),
        ("DeferredCudaCallError", "DeferredMusaCallError"),
        ("nccl.all_reduce", "mccl.all_reduce"),
        ("nvtx", "mttx"),
        ("memory_stats", "memory_stats"),
    ],
)
def test_spelling(cuda, musa):
    assert spelled(cuda) == musa


def _module(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    for value in members.values():
        if isinstance(value, types.FunctionType):
            value.__module__ = name
    return module


def _known_bad():
    def present():
        pass

    def cuda_thing():
        pass

    cuda = _module("torch.cuda", present=present, cuda_thing=cuda_thing, CUDAThing=type("CUDAThing", (), {}))
    cuda.CUDAThing.__module__ = "torch.cuda"
    return cuda, _module("torch.musa", present=present, MUSAThing=object)


def test_a_missing_name_is_noticed():
    cuda, musa = _known_bad()
    result = compare(cuda, musa, {})
    assert result.present == ["CUDAThing", "present"] and result.missing == ["cuda_thing"]


REASON = "a reason of some length"


@pytest.mark.parametrize(
    "excused, complaint",
    [
        ({"cuda_thing": REASON}, None),
        ({"cuda_thing": "later"}, "is no reason"),
        ({"cuda_thing": REASON, "present": REASON}, "torch.musa has it"),
        ({"cuda_thing": REASON, "gone": REASON}, "no such name"),
    ],
)
def test_an_excuse_must_be_needed_and_explained(excused, complaint):
    result = compare(*_known_bad(), excused)
    assert result.missing == []
    assert len(result.stale) == (complaint is not None)
    assert complaint is None or complaint in result.stale[0]
