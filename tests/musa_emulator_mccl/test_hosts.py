# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The choice of a host's interface and address, and of the one page that its ranks share and open."""

import re
import subprocess
import sys

import pytest

from tests.harness import hosts, skips
from tests.harness.rank_processes import ROOT
from tests.musa_emulator import sdk
from tests.musa_emulator_mccl.processes import run_ranks

pytestmark = pytest.mark.once

# MCCL_SOCKET_IFNAME, and the interface that it selects; None if it is an error.
INTERFACES = {
    "": "net0",
    "net": "net0",
    "net1": "net1",
    "=net": None,
    "=net1": "net1",
    "ib,net1": "net1",
    "^net": "docker0",
    "^net,lo": "docker0",
    "^=net0": "net1",
    "docker": "docker0",
    "lo": "lo",
    "down0": None,
    "ib7": None,
    "^net,docker,lo": None,
}

CHOOSE = f"""
import ctypes, faulthandler, os, subprocess, sys, time
faulthandler.dump_traceback_later(90)
from tests.musa_emulator_mccl.binding import *
def choose(name, wanted):
    os.environ["MCCL_SOCKET_IFNAME"] = wanted
    print("#", name, file=sys.stderr, flush=True)
    print(mccl.mcclGetUniqueId(ctypes.byref(UniqueId())), file=sys.stderr, flush=True)
for wanted in {list(INTERFACES)}:
    choose(wanted, wanted)
def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout
for name in ("net0", "net1"):
    ip("address", "flush", "dev", name)
ip("address", "add", "fd77::1/64", "dev", "net1", "nodad")
# The kernel adds the route to the address asynchronously, after the address. An earlier connection fails with
# EHOSTUNREACH, and c10d does not try the address again.
while not ip("-6", "route", "show", "table", "local", "fd77::1"):
    time.sleep(0.01)
choose("six", "net")
ip("link", "del", "net0")
ip("link", "del", "docker0")
choose("only loopback", "")
ip("link", "set", "lo", "down")
choose("nothing", "")
"""


@pytest.fixture(scope="module")
def chosen() -> dict[str, tuple[int, str]]:
    """The result and log of mcclGetUniqueId by case, in a network namespace with its own interfaces."""
    if reason := hosts.why_not():
        skips.skip_permanently("several-hosts", reason)
    setup = "ip link set lo up; ip link add docker0 up type veth peer name d0; ip link set d0 up;"
    setup += "ip link add net1 up type veth peer name net0; ip link set net0 up;"
    setup += "ip link add down0 type veth peer name n;"
    for number, name in enumerate(("docker0", "net0", "net1", "down0")):
        setup += f"ip address add 10.78.{number}.1/24 dev {name};"
    try:
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", setup + 'exec "$0" -c "$1"', sys.executable, CHOOSE],
            env=sdk.clean_environment(
                MCCL_DEBUG="INFO", TORCH_DEVICE_BACKEND_AUTOLOAD="0", PYTHONPATH=str(ROOT)
            ),
            capture_output=True,
            text=True,
            timeout=120,
        )
    except subprocess.TimeoutExpired as late:
        told = late.stderr or b""
        pytest.fail(f"the host did not exit; its stack after 90 s:\n{told.decode(errors='replace')}")
    assert done.returncode == 0, done.stderr
    cases = re.findall(r"^# (.*)\n([\s\S]*?)^(\d+)$", done.stderr, re.MULTILINE)
    return {name: (int(result), log) for name, log, result in cases}


@pytest.mark.parametrize("wanted", INTERFACES)
def test_the_interface_is_the_one_that_the_variable_permits(chosen, wanted):
    result, log = chosen[wanted]
    if INTERFACES[wanted] is None:
        assert result == 2 and f"MCCL_SOCKET_IFNAME is '{wanted}', and no such interface" in log
        assert "net0 10.78.1.1" in log and "down0" not in log.partition("Its interfaces")[2], log
    else:
        assert result == 0 and f"interface {INTERFACES[wanted]}, address" in log, log


def test_other_addresses_are_used_if_there_is_no_better_one(chosen):
    assert "interface net1, address fd77::1 port" in chosen["six"][1]
    assert "interface lo, address 127.0.0.1 port" in chosen["only loopback"][1]
    result, log = chosen["nothing"]
    assert result == 2 and "no network interface that is up" in log


# What ranks send to each other after connecting: the secret of the id, and the two ranks.
PROVE = """
    import hashlib
    secret, message = f"{int.from_bytes(raw[80:88], sys.byteorder):016x}", torch.empty(40, dtype=torch.uint8)
    receives = gloo.recv([message], 1, (1 << 30) + 1)
    proof = hashlib.sha1(f"{secret} 0 1".encode()).hexdigest().encode()
    gloo.send([torch.frombuffer(bytearray(proof), dtype=torch.uint8)], 1, (1 << 30) + 1).wait()
    receives.wait()
    assert bytes(message.tolist()).decode() == hashlib.sha1(f"{secret} 1 0".encode()).hexdigest()
"""

# Rank 0 is a program that speaks the protocol of the store and Gloo, and sends an arbitrary text in place of
# the name of its page.
HOSTILE = """
import datetime
import torch.distributed as dist
folder = Path(os.environ["MCCL_TEST_FOLDER"])
def memfd(name, bytes):
    descriptor = os.memfd_create(name)
    os.truncate(descriptor, bytes)
    return descriptor
def place(descriptor, more=0):
    return f"{os.getpid()} {descriptor} {os.fstat(descriptor).st_ino + more}"
def places():
    (folder / "file").write_bytes(b"precious" * 4096)
    os.mkfifo(folder / "pipe")
    file, pipe = (os.open(folder / name, os.O_RDWR) for name in ("file", "pipe"))
    PAGE = "musa-emulator-mccl"
    return {
        "path": f"{folder}/file",
        "no number": f"{os.getpid()} ../../..{folder}/file 1",
        "more": place(memfd(PAGE, 1 << 20)) + " /../file",
        "file": place(file),
        "pipe": place(pipe),
        "folder": place(os.open(folder, os.O_RDONLY)),
        "foreign": place(memfd("another", 1 << 20)),
        "inode": place(memfd(PAGE, 1 << 20), more=1),
        "short": place(memfd(PAGE, 64)),
        "gone": f"{os.getpid()} 999 1",
        "process 0": "0 0 0",
        "empty": "",
    }
ok(rt.musaSetDevice(RANK))
for name in CASES:
    unique = unique_id("id_" + name.replace(" ", "_"))
    print("#", name, file=sys.stderr, flush=True)
    if RANK == 1:
        comm = ctypes.c_void_p()
        print(mccl.mcclCommInitRank(ctypes.byref(comm), 2, unique, 1), file=sys.stderr, flush=True)
        continue
    raw = bytes(unique)
    address, port = raw[21:67].split(b"\\0")[0].decode(), int.from_bytes(raw[68:70], sys.byteorder)
    bare = dist.TCPStore(address, port, None, False, wait_for_workers=False)
    store = dist.PrefixStore("mccl", bare)
    ranks, host, *where, device, process = store.get("rank1").decode().split("\\n")
    store.set("rank0", "\\n".join([ranks, host, *where, "0", str(os.getpid())]))
    gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), 0, 2, datetime.timedelta(seconds=60))
    if name == CASES[0]:
        texts = places()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    space = f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    store.set("ledger", f"{host}\\n{space}\\n{texts[name]}")
    PROVE
    gloo.barrier().wait()
    assert (folder / "file").read_bytes() == b"precious" * 4096
    wait_until(lambda: bare.add(f"{int.from_bytes(raw[72:80], sys.byteorder):016x}/left", 0) == 1)
"""

REASONS = {
    "path": "did not send a process, a descriptor and an inode",
    "no number": "did not send a process, a descriptor and an inode",
    "more": "did not send a process, a descriptor and an inode",
    "file": "is not the page of a ledger",
    "pipe": "is not the page of a ledger",
    "folder": "is not the page of a ledger",
    "foreign": "is not the page of a ledger",
    "inode": "is not the page of a ledger",
    "short": "has 64 bytes, and",
    "gone": "cannot be opened",
    "process 0": "cannot be opened",
    "empty": "did not send a process, a descriptor and an inode",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> dict[str, tuple[int, str]]:
    code = f"import sys\nCASES = {list(REASONS)}\n" + HOSTILE.replace("    PROVE\n", PROVE)
    ended = run_ranks(code, tmp_path_factory.mktemp("hostile"), MCCL_DEBUG="INFO")
    assert [one.status for one in ended] == [0, 0], "\n".join(one.err for one in ended)
    cases = re.findall(r"^# (.*)\n([\s\S]*?)^(\d+)$", ended[1].err, re.MULTILINE)
    return {name: (int(result), log) for name, log, result in cases}


@pytest.mark.parametrize("case", REASONS)
def test_a_page_that_is_no_ledger_is_not_opened(hostile, case):
    result, log = hostile[case]
    assert result == 0 and "shares no page with rank 0" in log and REASONS[case] in log, log


def test_ranks_of_one_host_share_a_page(tmp_path):
    for ended in run_ranks("join()", tmp_path, MCCL_DEBUG="INFO"):
        assert ended.status == 0 and "is ready" in ended.err and "shares no page" not in ended.err, ended.err


# Rank 0 uses the store without the secret of the id, so it sends a wrong proof.
STRANGER = """
import datetime, sys
import torch.distributed as dist
ok(rt.musaSetDevice(RANK))
unique = unique_id()
if RANK == 1:
    comm = ctypes.c_void_p()
    print(mccl.mcclCommInitRank(ctypes.byref(comm), 2, unique, 1))
    Path(os.environ["MCCL_TEST_FOLDER"], "ended").touch()
    sys.exit()
raw = bytes(unique)
address, port = raw[21:67].split(b"\\0")[0].decode(), int.from_bytes(raw[68:70], sys.byteorder)
store = dist.PrefixStore("mccl", dist.TCPStore(address, port, None, False, wait_for_workers=False))
ranks, host, *where, device, process = store.get("rank1").decode().split("\\n")
store.set("rank0", "\\n".join([ranks, host, *where, "0", str(os.getpid())]))
gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), 0, 2, datetime.timedelta(seconds=60))
receives = gloo.recv([torch.zeros(40, dtype=torch.uint8)], 1, (1 << 30) + 1)
gloo.send([torch.zeros(40, dtype=torch.uint8)], 1, (1 << 30) + 1).wait()
receives.wait()
wait_until(Path(os.environ["MCCL_TEST_FOLDER"], "ended").exists)
"""


def test_a_stranger_is_not_taken_for_a_rank(tmp_path):
    ended = run_ranks(STRANGER, tmp_path)
    assert [one.status for one in ended] == [0, 0], "\n".join(one.err for one in ended)
    assert ended[1].out.split() == ["2"]
    assert "a process that is not of this communicator has connected in place of rank 0" in ended[1].err


# The addresses on which this process listens, by the inodes of its sockets.
LISTENERS = """
def listening():
    own = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            own.add(os.readlink(f"/proc/self/fd/{descriptor}"))
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                found.append(fields[1].partition(":")[0])
    return found
"""
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # 127.0.0.1 and ::1, as the tables write them


def test_ranks_of_one_host_listen_on_loopback_only(tmp_path):
    code = "import contextlib, sys\n" + LISTENERS + "comm = join()\nprint(*listening())"
    for ended in run_ranks(code, tmp_path, 3):
        assert ended.status == 0, ended.err
        assert ended.out.split() and set(ended.out.split()) <= LOOPBACK, ended.out


def test_a_listener_on_the_network_would_be_seen(tmp_path):
    code = "import contextlib, socket, sys\n" + LISTENERS
    code += "server = socket.create_server(('0.0.0.0', 0))\nprint(*listening())"
    (ended,) = run_ranks(code, tmp_path, 1)
    assert not set(ended.out.split()) <= LOOPBACK, ended.out
