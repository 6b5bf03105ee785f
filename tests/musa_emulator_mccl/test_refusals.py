# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Wrong calls are refused with a reason, and nothing is sent."""

import pytest

from tests.musa_emulator_mccl.processes import outputs_of, run_ranks

pytestmark = pytest.mark.once

SETUP = """
comm = ctypes.c_void_p()
fine(mccl.mcclCommInitRank(ctypes.byref(comm), 1, unique_id(), 0))
stream, x = make_stream(), Buffer(torch.ones(8))
host = torch.ones(8)
on_host = ctypes.c_void_p(host.data_ptr())
"""

BAD_CALLS = {
    "mcclAllReduce(x.pointer, x.pointer, size(9), 7, SUM, comm, stream)": "not 36 accessible bytes",
    "mcclAllReduce(on_host, x.pointer, size(8), 7, SUM, comm, stream)": "send buffer",
    "mcclAllReduce(x.pointer, None, size(8), 7, SUM, comm, stream)": "receive buffer",
    "mcclAllReduce(x.pointer, x.pointer, size(8), 12, SUM, comm, stream)": "unknown data type 12",
    "mcclAllReduce(x.pointer, x.pointer, size(8), 7, 5, comm, stream)": "unknown reduction 5",
    "mcclAllReduce(x.pointer, x.pointer, size(8), 7, SUM, None, stream)": "communicator was destroyed",
    "mcclBcast(x.pointer, size(8), 7, 1, comm, stream)": "rank out of range: 1",
    "mcclSend(x.pointer, size(8), 7, -1, comm, stream)": "rank out of range: -1",
    "mcclRedOpDestroy(0, comm)": "not created by this communicator",
    "mcclCommInitRank(ctypes.byref(comm), 2, UniqueId(), 2)": "rank 2 of 2 is out of range",
    "mcclCommInitRank(ctypes.byref(comm), 1, UniqueId(), 0)": "not created by mcclGetUniqueId",
    "mcclCommInitAll(ctypes.byref(comm), 2, (ctypes.c_int * 2)(0, 0))": "one or more distinct devices",
    "mcclCommInitAll(ctypes.byref(comm), 1, (ctypes.c_int * 1)(7))": "unknown device 7",
    "mcclGroupEnd()": "no group is open",
    "mcclGetVersion(None)": "is null",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    lines = [f"print(mccl.{call}, file=sys.stderr, flush=True)" for call in BAD_CALLS]
    code = SETUP + "import sys\n" + "\n".join(lines) + "\nx.get(); print('alive')"
    [done] = run_ranks(code, tmp_path_factory.mktemp("refusals"), 1, MUSA_EMULATOR_DEVICES="2")
    assert done.out.strip() == "alive", done.err
    told, answers = [], {}
    calls = iter(BAD_CALLS)
    for line in done.err.splitlines():
        if line.strip("-").isdigit():
            answers[next(calls)] = (int(line), "\n".join(told))
            told = []
        else:
            told.append(line)
    return answers


@pytest.mark.parametrize("call", BAD_CALLS)
def test_a_bad_call_is_refused_with_its_reason(answers, call):
    result, told = answers[call]
    assert result in (4, 5)
    assert told.startswith("MCCL WARN") and call.partition("(")[0].replace("Bcast", "Broadcast") in told
    assert BAD_CALLS[call] in told


def test_a_stream_of_another_device_is_refused(tmp_path):
    code = (
        SETUP
        + """
ok(rt.musaSetDevice(1))
print(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, make_stream()))
"""
    )
    [done] = run_ranks(code, tmp_path, 1, MUSA_EMULATOR_DEVICES="2")
    assert done.out.strip() == "4" and "not one of the device" in done.err


def test_a_refused_call_refuses_its_group(tmp_path):
    code = (
        SETUP
        + """
y = Buffer(torch.zeros(8))
fine(mccl.mcclGroupStart())
fine(mccl.mcclAllReduce(x.pointer, y.pointer, x.count, x.dtype, SUM, comm, stream))
print(mccl.mcclAllReduce(x.pointer, y.pointer, size(99), x.dtype, SUM, comm, stream), mccl.mcclGroupEnd())
print(y.get().sum().item())
fine(mccl.mcclAllReduce(x.pointer, y.pointer, x.count, x.dtype, SUM, comm, stream))
print(y.get().sum().item())
"""
    )
    assert outputs_of(code, tmp_path, 1)[0].splitlines() == ["4 4", "0.0", "8.0"]


def test_small_types_need_their_architecture(tmp_path):
    code = (
        SETUP
        + """
for dtype in (9, 10):
    print(mccl.mcclAllReduce(x.pointer, x.pointer, size(8), dtype, SUM, comm, stream))
"""
    )
    for arch, expected in {"mp_21": ["4", "4"], "mp_22": ["0", "4"], "mp_31": ["0", "0"]}.items():
        (tmp_path / arch).mkdir()
        assert outputs_of(code, tmp_path / arch, 1, MUSA_EMULATOR_ARCH=arch)[0].split() == expected


def test_a_destroyed_communicator_is_refused(tmp_path):
    code = (
        SETUP
        + """
fine(mccl.mcclCommDestroy(comm))
print(mccl.mcclCommDestroy(comm), mccl.mcclCommAbort(comm))
print(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, stream))
"""
    )
    assert outputs_of(code, tmp_path, 1)[0].split() == ["4", "4", "4"]


def test_two_ranks_on_one_device_are_refused(tmp_path):
    code = """
        comm = ctypes.c_void_p()
        print(mccl.mcclCommInitRank(ctypes.byref(comm), 2, unique_id(), RANK))
    """
    for done in run_ranks(code, tmp_path):
        assert done.out.strip() == "5"
        assert "ranks 0 and 1 are on one device" in done.err and "MUSA_EMULATOR_DEVICES" in done.err


def test_ranks_with_different_numbers_of_ranks_are_refused(tmp_path):
    code = """
        ok(rt.musaSetDevice(RANK))
        comm = ctypes.c_void_p()
        print(mccl.mcclCommInitRank(ctypes.byref(comm), 2 + RANK, unique_id(), RANK))
    """
    ended = run_ranks(code, tmp_path)
    assert ended[0].out.strip() == "5" and "rank 1 was started with nranks=3" in ended[0].err


def test_an_injected_failure_refuses_the_call(tmp_path):
    code = (
        SETUP
        + """
for _ in range(3):
    print(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, stream))
"""
    )
    code = "rt.musaEmulatorFailNth(b'mcclAllReduce', ctypes.c_ulonglong(2), 2)\n" + code
    assert outputs_of(code, tmp_path, 1)[0].split() == ["0", "2", "0"]


@pytest.mark.parametrize(
    "rule",
    [
        *("mcclAllReduce=drop", "@x=drop", "@1=fly", "@1=delay:soon", "@0=drop", "mcclAllreduce@1=drop"),
        *("@1=delay:-5", "@1=delay:99999999999", "@99999999999999999999=drop", "nonsense", " "),
    ],
)
def test_an_invalid_rule_for_faults_is_named(tmp_path, rule):
    code = """
        comm = ctypes.c_void_p()
        print(mccl.mcclCommInitRank(ctypes.byref(comm), 1, unique_id(), 0))
    """
    [done] = run_ranks(code, tmp_path, 1, MUSA_EMULATOR_MCCL_FAULT=rule)
    assert done.out.strip() == "5" and f"at '{rule}'; expected CALL@N=ACTION" in done.err
    assert "Fix: correct it" in done.err
