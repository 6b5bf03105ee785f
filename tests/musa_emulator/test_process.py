# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Behaviour of a whole process: its environment, faults, forks and exit."""

from __future__ import annotations

import signal

import pytest

from tests.musa_emulator import sdk

pytestmark = pytest.mark.once

MODES = ("inline", "async", "lazy")


# ---- strict memory ---------------------------------------------------------------------------------------


def test_an_access_to_device_memory_in_strict_mode_is_explained_before_the_fault() -> None:
    done = sdk.run("p = malloc(4096); ctypes.memset(p.value + 100, 1, 1)", MUSA_EMULATOR_MEMORY="strict")
    assert done.returncode == -signal.SIGSEGV
    assert "host code accessed device memory" in done.stderr
    assert "device 0, byte 100 of the allocation of 4096 bytes" in done.stderr
    assert "musaMemcpy" in done.stderr and "MUSA_EMULATOR_MEMORY=shared" in done.stderr


def test_an_access_past_the_end_in_strict_mode_names_no_allocation() -> None:
    done = sdk.run("p = malloc(4096); ctypes.memset(p.value + 4096, 1, 1)", MUSA_EMULATOR_MEMORY="strict")
    assert done.returncode == -signal.SIGSEGV
    assert "no live allocation" in done.stderr


def test_without_strict_memory_the_host_can_access_device_memory() -> None:
    assert "fine" in sdk.output("p = malloc(4096); ctypes.memset(p.value + 100, 1, 1); print('fine')")


def test_the_previous_fault_handler_still_runs() -> None:
    code = """
        import faulthandler
        faulthandler.enable()
        p = malloc(4096)
        ctypes.memset(p.value, 1, 1)
    """
    done = sdk.run(code, MUSA_EMULATOR_MEMORY="strict")
    assert done.returncode == -signal.SIGSEGV
    assert "host code accessed device memory" in done.stderr
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_faults_outside_device_memory_are_not_reported() -> None:
    done = sdk.run("malloc(16); ctypes.memset(8, 1, 1)", MUSA_EMULATOR_MEMORY="strict")
    assert done.returncode == -signal.SIGSEGV
    assert "musa-emulator" not in done.stderr


# ---- fork ------------------------------------------------------------------------------------------------

FORK = """
def in_child(body):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, body().encode())
        os._exit(0)
    os.close(write)
    text = b"".join(iter(lambda: os.read(read, 4096), b"")).decode()
    assert os.waitpid(pid, 0)[1] == 0
    return text
"""


@pytest.mark.parametrize("mode", MODES)
def test_after_a_fork_every_call_fails_and_none_hangs(mode: str) -> None:
    code = f"""{FORK}
s = stream()
p = malloc(64)
callback = HOST_FUNCTION(lambda _: None)
ok(rt.musaLaunchHostFunc(s, callback, None))
def child():
    q = ctypes.c_void_p()
    return " ".join([
        name(rt.musaMalloc(ctypes.byref(q), 64)), name(rt.musaDeviceSynchronize()),
        name(rt.musaStreamSynchronize(s)), name(rt.musaFree(p)), count()[0], name(rt.musaGetLastError())])
print(in_child(child))
ok(rt.musaStreamSynchronize(s))
ok(rt.musaFree(p))
"""
    assert sdk.output(code, MUSA_EMULATOR_MODE=mode).split() == ["musaErrorInitializationError"] * 6


def test_a_process_that_has_not_used_the_runtime_may_fork() -> None:
    code = f"""{FORK}
def child():
    return name(rt.musaFree(malloc(64)))
print(in_child(child))
ok(rt.musaFree(malloc(64)))
"""
    assert sdk.output(code).strip() == "musaSuccess"


def test_a_forked_child_that_exits_normally_does_not_hang() -> None:
    code = """
s = stream()
pid = os.fork()
if pid == 0:
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("done")
"""
    assert sdk.output(code, MUSA_EMULATOR_MODE="async").strip() == "done"


# ---- the end ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_exit_with_work_in_flight_is_clean(mode: str) -> None:
    code = """
import threading
s = stream()
pinned = ctypes.c_void_p()
ok(rt.musaHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(1 << 20), 0))
p = malloc(1 << 20)
for _ in range(200):
    ok(rt.musaMemcpyAsync(p, pinned, ctypes.c_size_t(1 << 20), 1, s))
print("leaving")
"""
    assert sdk.output(code, MUSA_EMULATOR_MODE=mode).strip() == "leaving"


def test_an_operation_that_never_ends_does_not_keep_the_process_alive() -> None:
    code = """
libc = ctypes.CDLL(None)
s = stream()
ok(rt.musaLaunchHostFunc(s, ctypes.cast(libc.pause, ctypes.c_void_p), None))
print("leaving")
"""
    done = sdk.run(code, timeout=30, MUSA_EMULATOR_MODE="async")
    assert done.returncode == 0, done.stderr
    assert "leaving" in done.stdout


def test_calls_after_the_shutdown_report_that_the_driver_is_unloaded() -> None:
    # Destructors of static objects run after the runtime has shut down, and must get an error, not a crash.
    code = """
libc = ctypes.CDLL(None)
EXIT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)
def late(status, argument):
    os.write(1, (name(rt.musaDeviceSynchronize()) + "\\n").encode())
keep = EXIT(late)
libc.on_exit(keep, None)  # registered before the runtime starts, so it runs after the runtime has stopped
malloc(64)
libc.exit(0)
"""
    done = sdk.run(code)
    assert done.stdout.strip() == "musaErrorMusartUnloading", done.stderr


# ---- the environment -------------------------------------------------------------------------------------


def test_mode_is_taken_from_the_environment() -> None:
    for mode in MODES:
        assert sdk.output("print(rt.musaEmulatorMode().decode())", MUSA_EMULATOR_MODE=mode).strip() == mode
    assert sdk.output("print(rt.musaEmulatorMode().decode())").strip() == "inline"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MUSA_EMULATOR_MODE", "eager"),
        ("MUSA_EMULATOR_ARCH", "sm_90"),
        ("MUSA_EMULATOR_DEVICES", "-1"),
        ("MUSA_EMULATOR_MEMORY_LIMIT", "lots"),
        ("MUSA_EMULATOR_MEMORY", "paranoid"),
        ("MUSA_EMULATOR_POISON", "on"),
        ("MUSA_EMULATOR_FAIL", "musaMalloc@1=NoSuchError"),
    ],
)
def test_a_refused_setting_is_named_once_and_can_be_queried(variable: str, value: str) -> None:
    code = """
for _ in range(3):
    print(name(rt.musaDeviceSynchronize()))
print(rt.musaEmulatorConfigurationError().decode())
"""
    done = sdk.run(code, **{variable: value})
    assert done.returncode == 0
    assert done.stdout.count("musaErrorInitializationError") == 3
    assert variable in done.stdout.splitlines()[-1]
    assert done.stderr.count(variable + "=") + done.stderr.count(variable + ":") == 1, done.stderr


def test_invalid_visible_devices_are_explained() -> None:
    done = sdk.run("print(*count())", MUSA_VISIBLE_DEVICES="0,two")
    assert done.stdout.split() == ["musaErrorNoDevice", "0"]
    assert '"two" is not a device ordinal' in done.stderr
    assert "unset MUSA_VISIBLE_DEVICES" in done.stderr


def test_empty_visible_devices_hide_all_without_a_message() -> None:
    done = sdk.run("print(*count())", MUSA_VISIBLE_DEVICES="")
    assert done.stdout.split() == ["musaErrorNoDevice", "0"]
    assert done.stderr == ""


def test_faults_can_be_armed_from_the_environment() -> None:
    code = """
malloc(16)
p = ctypes.c_void_p()
print(name(rt.musaMalloc(ctypes.byref(p), 16)))
malloc(16)
"""
    fault = "musaMalloc@2=musaErrorMemoryAllocation"
    assert sdk.output(code, MUSA_EMULATOR_FAIL=fault).strip() == "musaErrorMemoryAllocation"


def test_the_memory_limit_takes_suffixes() -> None:
    code = """
free, total = ctypes.c_size_t(), ctypes.c_size_t()
ok(rt.musaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
print(total.value)
"""
    for text, size in (("1048576", 1 << 20), ("512k", 512 << 10), ("3M", 3 << 20), ("2G", 2 << 30)):
        assert int(sdk.output(code, MUSA_EMULATOR_MEMORY_LIMIT=text)) == size


def test_a_process_with_little_address_space_still_gets_its_devices() -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
print(*count())
malloc(1 << 20)
"""
    assert sdk.output(code).split() == ["musaSuccess", "2"]


def test_an_impossible_reservation_is_explained() -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
print(name(rt.musaDeviceSynchronize()))
"""
    done = sdk.run(code)
    assert done.stdout.strip() == "musaErrorMemoryAllocation", done.stderr
    assert "ulimit -v" in done.stderr
