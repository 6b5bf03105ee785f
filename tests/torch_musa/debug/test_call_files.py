# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Files of calls choose no code: `replay` accepts tensor operators of aten, and refuses everything else by
CallFileError."""

import itertools
import math
import os
import pickle
import random
import struct

import pytest
import torch

from tests.harness.subprocesses import run_module
from tests.torch_musa.debug.planted import planted, wrong
from tests.torch_musa.debug.test_replay import status_of
from torch_musa import debug
from torch_musa.__main__ import main
from torch_musa.debug import call_file
from torch_musa.debug.reproducer import _as_code

pytestmark = pytest.mark.usefixtures("musa")


@pytest.fixture
def content(tmp_path):
    """The content of a valid file: `div` with a rounding mode, a list of tensors has `cat`'s."""
    with debug.dump("aten::div.Tensor_mode", tmp_path / "saved") as saved:
        torch.div(torch.ones(2, 3, device="musa"), torch.ones(3, device="musa"), rounding_mode="floor")
    return torch.load(saved.files[0], weights_only=True)


def outcome_of(content, path):
    torch.save(content, path)
    return debug.replay(path)


def test_the_unchanged_file_is_replayed(content, tmp_path):
    assert outcome_of(content, tmp_path / "call.pt").status == 0


def call(operator, *args, **kwargs):
    return {"operator": operator, "args": list(args), "kwargs": kwargs}


@pytest.mark.parametrize(
    "operator", ["from_file", "from_file.out", "save", "_print", "warn", "get_autocast_dtype", "manual_seed"]
)
def test_operators_that_do_not_compute_with_tensors_are_refused(content, tmp_path, operator):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    kwargs = {"shared": True, "size": 1000, "device": {"device": "musa"}}
    args = [{"tensor": 0}, str(victim)] if operator == "save" else [str(victim)]
    with pytest.raises(debug.CallFileError, match="Fix: "):
        outcome_of(
            {**content, "operator": f"aten::{operator}", "args": args, "kwargs": kwargs}, tmp_path / "call.pt"
        )
    assert victim.read_bytes() == b"precious"


def test_every_operator_with_a_text_is_refused_or_takes_a_word():
    """Lists the operators of aten and TorchScript whose parameters hold a str, and the refused ones."""
    schemas = [schema for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")]
    texts, refused = 0, set()
    for schema in schemas:
        if not any("str" in str(argument.type) for argument in schema.arguments):
            continue
        texts += 1
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"))
        func = getattr(packet, schema.overload_name or "default")
        if call_file._refusal(func):
            refused.add(name)
    assert texts > 150
    assert {"aten::from_file", "aten::from_file.out", "aten::save", "aten::warn"} <= refused
    accepted = texts - len(refused)
    assert 80 < accepted < 150, accepted


def test_other_namespaces_are_named_by_the_caller(content, tmp_path):
    with torch.library._scoped_library("of_call_files", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        path = tmp_path / "call.pt"
        torch.save({**content, **call("of_call_files::twice", {"tensor": 0})}, path)
        with pytest.raises(debug.CallFileError, match="--namespace of_call_files"):
            debug.replay(path)
        assert debug.replay(path, namespaces=["of_call_files"]).error is None


def test_the_command_line_names_namespaces(content, tmp_path, capsys):
    path = tmp_path / "call.pt"
    torch.save({**content, **call("prims::sin", {"tensor": 0})}, path)
    done = run_module("torch_musa", "replay", "--namespace", "prims", str(path))
    assert "prims::sin" in done.stdout, done.stderr
    with pytest.raises(SystemExit) as end:
        main(["replay", "--times", "0", str(path)])
    assert end.value.code == 2 and "0 is less than 1" in capsys.readouterr().err
    assert main(["replay", str(path)]) == 1
    assert "--namespace prims" in capsys.readouterr().err
    with pytest.raises(ValueError, match="Fix: pass 1 or more"):
        debug.replay(path, times=0)


JUNK = (
    None, True, -1, 10**30, 1.5, math.nan, 1j, "", "aten", "::", "aten::", "aten::nosuch", "ops::x",
    "aten::relu.nosuch", "aten::__class__", "aten::relu.__init__", "aten::div\x00", [], [[]], [[[[[[[]]]]]]],
    {}, {"tensor": -1}, {"tensor": 99}, {"tensor": True}, {"tensor": "0"}, {"tensor": [0]},
    {"device": "nosuch"}, {"device": "cuda"}, {"device": 3},
    {"dtype": "load"}, {"dtype": "nosuch"}, {"layout": "float32"}, {"memory_format": None},
    {"generator": 1}, {"unknown": 1}, {"tensor": 0, "device": "cpu"}, {1: 2}, torch.ones(2),
    torch.ones(2).to_sparse(), b"bytes",
)  # fmt: skip


def variants(content):
    """Yields malformed contents: each field and each nested value removed and replaced."""
    for key in content:
        yield {name: value for name, value in content.items() if name != key}
        for junk in JUNK:
            yield {**content, key: junk}
            if isinstance(content[key], list):
                yield {**content, key: [junk]}
                yield {**content, key: [*content[key], junk]}
                yield {**content, key: [junk, *content[key][1:]]}
            if isinstance(content[key], dict):
                yield {**content, key: {"rounding_mode": junk}}
                yield {**content, key: {**content[key], "other": junk}}
                yield {**content, key: {**content[key], 3: junk}}
    yield from JUNK


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.full) for part in range(1, 5))])
def test_malformed_contents_are_call_file_errors(part, content, tmp_path):
    path, refused, run = tmp_path / "call.pt", 0, 0
    for variant in itertools.islice(variants(content), part, None, 5):
        try:
            torch.save(variant, path)
            outcome = debug.replay(path)
        except debug.CallFileError as error:
            assert "Fix: " in str(error)
            refused += 1
        else:  # notes, and values that the operator itself refuses
            run += 1
            assert outcome.operator == content["operator"]
    assert refused > 180 and run < 40, (refused, run)


def test_damaged_files_are_call_file_errors(content, tmp_path):
    path = tmp_path / "call.pt"
    torch.save(content, path)
    whole = path.read_bytes()
    draw = random.Random(0)
    damaged = [whole[: draw.randrange(len(whole))] for _ in range(40)]
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 3, 30))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        damaged.append(bytes(data))
    refused = 0
    for data in damaged:
        path.write_bytes(data)
        try:
            debug.replay(path)
        except debug.CallFileError as error:
            refused += 1
            assert "Fix: " in str(error)
    assert refused > 100


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickles_run_no_code(content, tmp_path):
    path, made = tmp_path / "call.pt", tmp_path / "made"
    path.write_bytes(pickle.dumps({**content, "note": Runs(made)}))
    with pytest.raises(debug.CallFileError):
        debug.replay(path)
    torch.save({**content, "note": Runs(made)}, path)
    with pytest.raises(debug.CallFileError):
        debug.replay(path)
    assert not made.exists()
    with pytest.raises(debug.CallFileError):
        debug.replay(tmp_path)  # a folder


def same(one, other):
    if isinstance(one, float):
        return type(other) is float and struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, complex):
        return type(other) is complex and same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


PARTS = (0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324)
VALUES = [
    *(None, True, False, 0, -1, 2**63 - 1, "", "a'\"\\\n\u00e9\udcff", "sum"),
    *PARTS,
    *(complex(real, imag) for real in PARTS for imag in PARTS),
    *(torch.float32, torch.bool, torch.complex64, torch.float8_e4m3fn, torch.strided, torch.sparse_coo),
    *(torch.channels_last, torch.preserve_format),
]


def test_values_are_python_in_scripts():
    values = [*VALUES, VALUES, [[*PARTS], None]]
    wrong = [value for value in values if not same(value, eval(_as_code(value, {}), {"torch": torch}))]
    assert not wrong
    assert not same(0.0, -0.0) and not same(complex(0.0, -0.0), 0j) and same(math.nan, math.nan)


def test_values_return_from_files(content, tmp_path):
    def encoded(value):
        kind = next((key for each, key in call_file._NAMED.items() if isinstance(value, each)), None)
        return {kind: str(value).removeprefix("torch.")} if kind else value

    path, values = tmp_path / "call.pt", [*VALUES, [*PARTS, None]]
    torch.save({**content, "args": [content["args"][0], *map(encoded, values)]}, path)
    _, *found = call_file.arguments(call_file.load(path), "cpu")[0]
    assert len(found) == len(values)
    assert not [value for value, other in zip(values, found, strict=True) if not same(value, other)]


def test_scripts_of_unusual_numbers_run(tmp_path):
    x = torch.ones(3, dtype=torch.complex64, device="musa")
    with planted("mul.Tensor", wrong("mul.Tensor")), planted("add.Tensor", wrong("add.Tensor")):
        with debug.compare(tmp_path, tolerances={torch.complex64: (0.0, -math.inf)}) as comparison:
            torch.ops.aten.add.Tensor(x, x, alpha=complex(-0.0, 2.0))
            torch.ops.aten.mul.Tensor(x, complex(math.inf, -0.0))
        assert len(comparison.differences) == 2
        # Infinity times the planted factor is infinity, so the second script finds no difference.
        found = [status_of(f"{difference.folder}/reproduce.py") for difference in comparison.differences]
    assert found == [1, 0]
