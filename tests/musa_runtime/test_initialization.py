# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""First use of the device: its order, a single run, queued calls, forks, threads. The runtime is a stub."""

import pytest

from tests.harness.stub_runtime import StubRuntime

pytestmark = pytest.mark.once

HEADER = """
from musa_runtime import initialization, load, errors, ops
from musa_runtime._load import extension

"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return StubRuntime(tmp_path_factory.mktemp("stub"))


def run(stub, code, **environment):
    done = stub.run(HEADER + code, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_packs_then_device_then_queued_calls_each_once(stub):
    code = """
C = extension()
initialization.set_pack_loader(lambda: C.calls.append("packs"))
initialization.call_when_initialized(lambda: C.calls.append("seed"), ("seed",))
assert C.calls == [] and not initialization.is_initialized()
initialization.lazy_init(); initialization.lazy_init()
print(C.calls, initialization.is_initialized())
initialization.call_when_initialized(lambda: C.calls.append("later"), ("seed",))
print(C.calls[-1])
"""
    assert run(stub, code) == ["['packs', 'init', 'seed'] True", "later"]


def test_an_equal_key_replaces_the_queued_call_and_the_last_order_counts(stub):
    code = """
seen = []
for value in range(1000):
    initialization.call_when_initialized(lambda value=value: seen.append(value), ("seed",))
    initialization.call_when_initialized(lambda: seen.append("state"), ("state",))
initialization.call_when_initialized(lambda: seen.append("last"), ("seed",))
assert len(initialization._queued) == 2
initialization.lazy_init()
print(seen)
"""
    assert run(stub, code) == ["['state', 'last']"]


def test_observers_are_notified_of_the_change(stub):
    code = "initialization.on_change(print); initialization.lazy_init(); initialization.lazy_init()"
    assert run(stub, code) == ["True"]


def test_a_pack_may_use_the_device_while_it_loads(stub):
    code = """
initialization.set_pack_loader(initialization.lazy_init)
initialization.lazy_init()
print(extension().calls)
"""
    assert run(stub, code) == ["['init']"]


def test_after_a_failure_the_next_use_retries(stub):
    code = """
C = extension()
good = C.init
def broken(): raise RuntimeError("no device today")
C.init = broken
for _ in range(2):
    try: initialization.lazy_init()
    except RuntimeError as error: print(error, initialization.is_initialized())
C.init = good
initialization.lazy_init()
print(initialization.is_initialized())
"""
    assert run(stub, code) == ["no device today False", "no device today False", "True"]


def test_a_queued_call_that_fails_is_named_and_does_not_block_the_device(stub):
    code = """
def broken(): raise ValueError("bad state")
initialization.call_when_initialized(broken, ("set_rng_state", 0))
try: initialization.lazy_init()
except errors.DeferredCallError as error: print(str(error), type(error.__cause__).__name__)
initialization.lazy_init()
print(initialization.is_initialized())
"""
    first, second = run(stub, code)
    assert "torch.musa.set_rng_state()" in first and "bad state" in first and first.endswith("ValueError")
    assert second == "True"


def test_the_fork_check_comes_before_everything(stub):
    code = """
initialization.lazy_init()
extension().bad_fork = True
try: initialization.lazy_init()
except errors.ForkError as error: print("spawn" in str(error), isinstance(error, RuntimeError))
"""
    assert run(stub, code) == ["True True"]


def test_a_forked_child_is_not_initialised_even_if_the_lock_was_held(stub):
    code = """
import os, threading
initialization.on_change(lambda value: print("changed", value, flush=True))
initialization.lazy_init()
held, done = threading.Event(), threading.Event()
def hold():
    with initialization._lock:
        held.set(); done.wait()
thread = threading.Thread(target=hold); thread.start(); held.wait()
child = os.fork()
if child == 0:
    with initialization._lock:  # would block for ever on the inherited lock
        print(initialization.is_initialized(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
done.set(); thread.join()
print(initialization.is_initialized())
"""
    assert run(stub, code) == ["changed True", "changed False", "False", "True"]


def test_threads_initialise_once(stub):
    code = """
import threading, time
C = extension()
def slow(): time.sleep(0.05); C.calls.append("init")
C.init = slow
threads = [threading.Thread(target=initialization.lazy_init) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(C.calls)
"""
    assert run(stub, code) == ["['init']"]


@pytest.mark.parametrize(
    "setting",
    [
        "host,host-copy",
        "demo",
        "aten::mm=demo",
        "aten::mm=demo, host;aten::*norm*=host-copy; host",
        "",
        " ; ",
    ],
)
def test_known_providers_in_the_environment_are_accepted(stub, setting):
    code = "initialization.lazy_init(); print(initialization.is_initialized())"
    assert run(stub, code, TORCH_MUSA_OPS=setting) == ["True"]


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("mudnm,host", "'mudnm,host'"),
        ("native;aten::mm=portd", "'aten::mm=portd'"),
        ("aten::mm=", "'aten::mm='"),
    ],
)
def test_an_unknown_provider_in_the_environment_is_named_until_it_is_fixed(stub, setting, part):
    code = """
import os
for _ in range(2):
    try: initialization.lazy_init()
    except errors.UnknownProviderError as error: print(str(error).replace(chr(10), " "), extension().calls)
os.environ["TORCH_MUSA_OPS"] = "host"
initialization.lazy_init()
print("fixed")
"""
    first, second, last = run(stub, code, TORCH_MUSA_OPS=setting)
    assert first == second
    assert f"TORCH_MUSA_OPS, in {part}" in first
    assert "there are: demo, host, host-copy, runtime" in first
    assert first.endswith("[]")  # the device was not used
    assert last == "fixed"


def test_a_rule_without_an_operator_is_refused(stub):
    code = """
try: initialization.lazy_init()
except errors.UnknownOpError as error: print(error)
"""
    assert "'=host' names no operator" in run(stub, code, TORCH_MUSA_OPS="=host")[0]


@pytest.mark.parametrize(
    ("visible", "fault"),
    [
        ("0,first", "'first' in it is no device index"),
        ("", "hides every device"),
        ("7", "hides every device"),
    ],
)
def test_without_a_device_the_variable_that_hides_it_is_named(stub, visible, fault):
    code = """
extension().device_count = lambda: 0
for _ in range(2):
    try: initialization.lazy_init()
    except errors.NoDeviceError as error: print(str(error).replace(chr(10), " "), extension().calls)
extension().device_count = lambda: 2
initialization.lazy_init()
"""
    first, second = run(stub, code, MUSA_VISIBLE_DEVICES=visible)
    assert first == second and fault in first and first.endswith("[]")
    assert f"MUSA_VISIBLE_DEVICES={visible!r}" in first and "unset MUSA_VISIBLE_DEVICES" in first


def test_prefer_checks_names_and_is_undone_by_its_block(stub):
    code = """
C = extension()
ops.prefer("mm", "host-copy")
with ops.prefer("aten::*", "demo", "host"):
    pass
print(C.calls[1:])
for arguments in (("aten::mm", "mudnn"), ("aten::mm",)):
    try: ops.prefer(*arguments)
    except errors.UnknownProviderError as error: print("demo, host, host-copy" in str(error))
"""
    expected = [("prefer", "aten::mm", ["host-copy"]), ("prefer", "aten::*", ["demo", "host"]), "reset"]
    expected.append(("prefer", "aten::mm", ["host-copy"]))
    assert run(stub, code) == [str(expected), "True", "True"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("aten::mn", "aten::mm"), ("aten::add", "aten::add.Tensor, aten::add.Scalar"), ("rellu", "aten::relu")],
)
def test_the_error_for_an_unknown_operator_names_the_closest(stub, name, hint):
    code = f"""
for query in (ops.explain, lambda op: ops.prefer(op, "host")):
    try: query({name!r})
    except errors.UnknownOpError as error: print({hint!r} in str(error))
"""
    assert run(stub, code) == ["True", "True"]


def test_operator_names_are_accepted_in_every_spelling(stub):
    code = """
class Schema: name, overload_name = "aten::add", "Tensor"
class Overload: _schema = Schema
class Packet: _qualified_op_name = "aten::mm"
for op in ("mm", "aten::mm", "aten.mm.default", "torch.ops.aten.add.Tensor", "add.Tensor"):
    print(ops.op_name(op))
print(ops.op_name(Overload()), ops.op_name(Packet()))
"""
    assert run(stub, code) == [*["aten::mm"] * 3, *["aten::add.Tensor"] * 2, "aten::add.Tensor aten::mm"]


def test_without_a_runtime_first_use_raises_the_cause_and_seeding_works(stub):
    code = """
initialization.call_when_initialized(print, ("manual_seed",))
for _ in range(2):
    try: initialization.lazy_init()
    except errors.SdkNotFoundError as error: print("\\nFix: " in str(error))
print(initialization.is_initialized(), initialization.is_in_bad_fork())
"""
    assert run(stub, code, MUSA_HOME="/nonexistent/musa")[-3:] == ["True", "True", "False False"]


def test_the_table_is_sorted_filtered_and_lists_candidates_in_order(stub):
    code = """
print([row["op"] for row in ops.table()])
print([row["op"] for row in ops.table("add")], [row["op"] for row in ops.table("*::add.S*")])
print(ops.table("mm")[0]["candidates"], ops.offers())
"""
    everything, filtered, order = run(stub, code)
    assert everything == str(["aten::add.Scalar", "aten::add.Tensor", "aten::mm", "aten::relu"])
    assert filtered == "['aten::add.Scalar', 'aten::add.Tensor'] ['aten::add.Scalar']"
    assert order == "['host', 'host-copy', 'demo'] {'demo': 4}"
