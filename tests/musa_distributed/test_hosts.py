# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ranks on several hosts: training gives the right result, and after a failure of a network or a host, ranks
raise in time, with ranks, hosts and addresses in the error. The hosts are namespaces: tests/harness/hosts.py.

--full runs every case and records the run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import hosts as harness
from tests.harness import records, skips
from tests.harness.hosts import Ended, Network

# The timeout of a group for a call or a start, in seconds; a test waits 120 s for the ranks to exit.
TIMEOUT = 3
PORT = 29500

pytestmark = [pytest.mark.once, pytest.mark.slow]

JOIN = f"""
import datetime, os, signal, sys, time, torch
import torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.musa.set_device(int(os.environ["LOCAL_RANK"]))
store = dist.TCPStore(os.environ["MASTER_ADDR"], {PORT}, size, rank == 0, wait_for_workers=False)
dist.init_process_group("mccl", store=store, rank=rank, world_size=size)
flags = os.environ["FLAGS"]
def together(word):
    store.add(word, 1)
    while store.add(word, 0) < size:
        time.sleep(0.02)
def wait_for(word):  # from the test
    print(word, "?", flush=True)
    while not os.path.exists(flags + word):
        time.sleep(0.02)
def short():  # when all ranks have joined, so that the timeout covers nothing else
    together("short")
    return dist.new_group(timeout=datetime.timedelta(seconds={TIMEOUT}))
x = torch.ones(1000, device="musa")
def expect_failure(call):
    begin = time.monotonic()
    try:
        call()
        x.cpu()
        print("went on")
    except dist.DistBackendError as error:
        print(error)
        print("FAILED")
    print("the device works:", (torch.ones(2, device="musa") + 1).tolist())
    open(f"{{flags}}{{rank}}", "w").close()
    for other in os.environ.get("SURVIVORS", "").split() if rank == 0 else ():  # the store is this rank's
        while not os.path.exists(flags + other):
            time.sleep(0.02)
"""
TRAINING = (
    JOIN
    + """
from tests.musa_distributed import training
training.ROWS = 8 * size  # so that all ranks have the same number
training.ddp()
training.fsdp2()
print("equal")
"""
)
START = JOIN + "group = short()\nexpect_failure(lambda: dist.all_reduce(x, group=group))\n"
STEP = (
    JOIN
    + f"""
dist.all_reduce(x)
x.cpu()
dist.group.WORLD.set_timeout(datetime.timedelta(seconds={TIMEOUT}))
wait_for("ready")
expect_failure(lambda: dist.all_reduce(x))
"""
)
QUIET = {"TORCH_MCCL_DUMP_ON_TIMEOUT": "0", "TORCH_MCCL_COORD_CHECK_MILSEC": "200"}
# Rank 0, which has the store, exits after these ranks.
ALL = {"SURVIVORS": "1 2 3"}
FIRST_HOST = {"SURVIVORS": "1"}


class Ranks:
    """Runs code on the hosts of a network, with two ranks each by default."""

    def __init__(self, network: Network, folder: Path, per_host: int = 2) -> None:
        self.network, self.folder, self.per_host = network, folder, per_host

    def start(self, code: str, settings: dict[int, dict[str, str]] | None = None, **shared: str) -> None:
        """Starts the code; `settings` has environment variables of single hosts, by index."""
        count = len(self.network.hosts) * self.per_host
        self.programs = [
            host.start(
                code,
                RANK=str(index * self.per_host + local),
                LOCAL_RANK=str(local),
                WORLD_SIZE=str(count),
                MUSA_EMULATOR_DEVICES=str(self.per_host),
                MASTER_ADDR=self.network.hosts[0].address(),
                FLAGS=f"{self.folder}/flag.",
                **QUIET,
                **shared,
                **(settings or {}).get(index, {}),
            )
            for index, host in enumerate(self.network.hosts)
            for local in range(self.per_host)
        ]

    def when_ready(self, what: Callable[[], None]) -> None:
        """Calls `what` while all ranks wait between two steps."""
        deadline = time.monotonic() + harness.PATIENCE
        while not all("ready ?" in program.out() for program in self.programs):
            assert time.monotonic() < deadline, [program.texts() for program in self.programs]
            time.sleep(0.05)
        what()
        (self.folder / "flag.ready").touch()

    def end(self) -> list[Ended]:
        return self.network.run(self.programs)

    def run(self, code: str, settings: dict[int, dict[str, str]] | None = None, **shared: str) -> list[Ended]:
        self.start(code, settings, **shared)
        return self.end()


def told(ended: Ended) -> str:
    """Returns the error that a rank printed; checks that the process went on and its device works."""
    assert ended.status == 0, f"{ended.status}\n{ended.out}\n{ended.err}"
    assert "FAILED" in ended.out and "went on" not in ended.out, f"{ended.out}\n{ended.err}"
    assert "the device works: [2.0, 2.0]" in ended.out, f"{ended.out}\n{ended.err}"
    return ended.out


def succeeded(ended: list[Ended]) -> list[str]:
    assert [one.status for one in ended] == [0] * len(ended), "\n".join(one.out + one.err for one in ended)
    return [one.out for one in ended]


@pytest.fixture(scope="module")
def available() -> None:
    if reason := harness.why_not():
        skips.skip_permanently("several-hosts", reason)


@pytest.fixture(scope="module")
def two(available: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with harness.network(2, tmp_path_factory.mktemp("hosts")) as network:
        yield network


@pytest.fixture
def ranks(two: Network, tmp_path: Path) -> Iterator[Ranks]:
    two.repair()
    yield Ranks(two, tmp_path)
    two.end_programs()  # programs of a failed test would keep the store's port in use


@pytest.fixture
def three(available: None, tmp_path: Path) -> Iterator[Ranks]:
    with harness.network(3, tmp_path) as network:
        yield Ranks(network, tmp_path, per_host=1)


@pytest.fixture(scope="module", autouse=True)
def record(request: pytest.FixtureRequest) -> Iterator[None]:
    """Records a complete run."""
    failed = request.session.testsfailed
    yield
    if request.config.getoption("--full"):
        names = sorted(item.name for item in request.session.items if item.module is request.module)
        summary = f"{len(names)} tests, {request.session.testsfailed - failed} failed"
        records.write("hosts", "pytest --full tests/musa_distributed/test_hosts.py", summary, tests=names)


# ---- successful runs


def test_training_over_two_hosts_equals_one_process(ranks):
    """The address is found without a variable. Ranks of the two hosts use devices with the same index."""
    for ended in ranks.run(TRAINING, MCCL_DEBUG="INFO"):
        assert (ended.status, ended.out) == (0, "equal\n"), ended.out + ended.err
        assert re.search(r"connects to rank 0 on host 'host-1' \(eth0 10\.77\.0\.1\)", ended.err)
        assert re.search(r"connects to rank 3 on host 'host-2' \(eth0 10\.77\.0\.2\)", ended.err)


def test_the_interface_that_is_named_is_used(ranks):
    code = JOIN + "dist.all_reduce(x)\nprint(x.sum().item())\n"
    ended = ranks.run(code, MCCL_DEBUG="INFO", MCCL_SOCKET_IFNAME="^eth0,lo")
    assert succeeded(ended) == ["4000.0\n"] * 4
    for one in ended:
        assert "host-2' (eth1 10.77.1.2)" in one.err and "10.77.0" not in one.err, one.err


@pytest.mark.full
def test_training_over_three_hosts_equals_one_process(three):
    assert succeeded(three.run(TRAINING)) == ["equal\n"] * 3


# ---- starts that cannot succeed


def test_two_ranks_on_one_device_are_found_on_their_host(ranks):
    code = START.replace('int(os.environ["LOCAL_RANK"])', "rank // 3")
    every = ranks.run(code, **ALL)
    assert all("two ranks are on one device" in told(ended) for ended in every)
    where = "ranks 0 and 1 are on one device of host 'host-1' (eth0 10.77.0.1)"
    assert any(where in one.err for one in every)


@pytest.mark.parametrize("host", [pytest.param(0, marks=pytest.mark.full), 1], ids=["host-1", "host-2"])
def test_an_interface_that_does_not_exist(ranks, host):
    settings = {host: {"MCCL_SOCKET_IFNAME": "ib7"}}
    name = f"host-{host + 1}"
    for rank, ended in enumerate(ranks.run(START, settings, **ALL)):
        text = told(ended)
        place = rf"{name} \(eth0 10\.77\.0\.{host + 1}, .*MCCL_SOCKET_IFNAME=ib7\)"
        assert re.search(rf"rank [{2 * host}{2 * host + 1}] on {place}", text), text
        if rank == 2 * host:
            assert f"no such interface of host '{name}'" in ended.err, ended.err
            assert f"eth1 10.77.1.{host + 1}" in ended.err, ended.err


@pytest.mark.parametrize("host", [0, pytest.param(1, marks=pytest.mark.full)], ids=["host-1", "host-2"])
def test_a_loopback_address_is_refused_between_hosts(ranks, host):
    name = f"host-{host + 1}"
    every = ranks.run(START, {host: {"MCCL_SOCKET_IFNAME": "lo"}}, **ALL)
    for ended in every:
        assert re.search(rf"{name} \(eth0 [^)]*, MCCL_SOCKET_IFNAME=lo\)", told(ended)), ended.out
    assert any(
        "127.0.0.1" in ended.err and f"'{name}'" in ended.err and "loopback" in ended.err for ended in every
    )


def test_a_start_over_a_network_that_drops_packets_fails_in_time_and_another_succeeds(ranks):
    """The store is reached over eth0. MCCL is set to use eth1, where packets are dropped for a while."""
    code = START + "wait_for('ready')\ndist.all_reduce(x, group=dist.new_group())\n"
    code += "print('sum', x[0].item())\n"
    ranks.network.drop(1)
    ranks.start(code, MCCL_SOCKET_IFNAME="eth1")
    ranks.when_ready(ranks.network.repair)
    for ended in ranks.end():
        text = told(ended)
        assert f"mcclCommInitRank did not return within {TIMEOUT}000 ms" in text, text
        for host in (1, 2):
            addresses = f"eth0 10.77.0.{host}, eth1 10.77.1.{host}, MCCL_SOCKET_IFNAME=eth1"
            assert f"host-{host} ({addresses}): ranks" in text, text
        assert "sum 4.0" in text, ended.err


def test_a_start_that_succeeds_after_its_timeout(ranks):
    """The communicator is aborted on a thread of the pack, where an exception would terminate the process.
    Setting the device fails on that thread, as it does when the process exits.
    """
    code = (
        START
        + f"""
from tests.harness.emulator import UNKNOWN, emulator_or_skip
emulator = emulator_or_skip()
before = emulator.calls("mcclCommAbort")
emulator.fail_nth("musaSetDevice", 1 + rank, UNKNOWN)
wait_for('ready')
deadline = time.monotonic() + {harness.PATIENCE / 2}
while emulator.calls("mcclCommAbort") == before and time.monotonic() < deadline:
    time.sleep(0.01)
emulator.clear_faults()
print("aborted", emulator.calls("mcclCommAbort") - before)
together("aborted")
"""
    )
    ranks.network.drop(1)
    ranks.start(code, MCCL_SOCKET_IFNAME="eth1", **ALL)
    ranks.when_ready(ranks.network.repair)
    for ended in ranks.end():
        assert "aborted 1" in told(ended), ended.err


# ---- steps that cannot complete


def test_a_network_that_drops_in_mid_step(ranks):
    ranks.start(STEP, MCCL_SOCKET_IFNAME="eth1", **ALL)
    ranks.when_ready(lambda: ranks.network.drop(1))
    for ended in ranks.end():
        text = told(ended)
        assert "mccl:all_reduce #2" in text and f"did not finish within {TIMEOUT}000 ms" in text, text
        for rank in range(4):
            host = 1 + rank // 2
            place = rf"host-{host} \(eth0 10\.77\.0\.{host},"
            assert re.search(rf"rank {rank}: last called .* \[on {place}", text), text


def test_a_host_that_is_unplugged_in_mid_step(ranks):
    """The host's ranks cannot reach the store either, and their error names its address."""
    ranks.start(STEP, **ALL)
    ranks.when_ready(lambda: [ranks.network.unplug(ranks.network.hosts[1], switch) for switch in (0, 1)])
    for rank, ended in enumerate(ranks.end()):
        text = told(ended)
        assert "mccl:all_reduce #2" in text, text
        if rank < 2:
            assert re.search(r"rank [23]: does not answer.* \[on host-2 \(eth0 10\.77\.0\.2", text), text
        else:
            assert f"the store at 10.77.0.1:{PORT} does not answer" in text, text
            assert re.search(r"host-1 \(eth0 10\.77\.0\.1.*\): ranks 0, 1", text), text


def test_a_host_that_vanishes_in_mid_step(ranks):
    ranks.start(STEP, **FIRST_HOST)
    ranks.when_ready(ranks.network.hosts[1].vanish)
    ended = ranks.end()
    assert [one.status for one in ended[2:]] == [None, None]
    for one in ended[:2]:
        text = told(one)
        assert "mccl:all_reduce #2" in text, text
        assert re.search(r"rank [23]: does not answer.* \[on host-2 \(eth0 10\.77\.0\.2", text), text


@pytest.mark.full
def test_the_host_of_the_store_vanishes_in_mid_step(ranks):
    ranks.start(STEP)
    ranks.when_ready(ranks.network.hosts[0].vanish)
    for one in ranks.end()[2:]:
        text = told(one)
        assert f"the store at 10.77.0.1:{PORT}" in text and "host-1 (eth0 10.77.0.1" in text, text


@pytest.mark.full
def test_one_of_three_hosts_vanishes_in_mid_step(three):
    three.start(STEP, **FIRST_HOST)
    three.when_ready(three.network.hosts[2].vanish)
    for one in three.end()[:2]:
        assert re.search(r"rank 2: does not answer.* \[on host-3 \(eth0 10\.77\.0\.3", told(one)), one.out


@pytest.mark.full
def test_a_host_that_vanishes_during_the_start(ranks):
    code = START.replace("expect_failure(lambda", "wait_for('ready')\nexpect_failure(lambda")
    ranks.start(code, **FIRST_HOST)
    ranks.when_ready(ranks.network.hosts[1].vanish)
    for one in ranks.end()[:2]:
        assert re.search(r"these ranks did not arrive: rank 2, 3\.", told(one)), one.out


# ---- torchrun

TRAIN = """
import os, signal, sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
start, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
torch.musa.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("mccl")
torch.manual_seed(0)
net = DistributedDataParallel(torch.nn.Linear(4, 4).to("musa"))
for step in range(3):
    loss = net(torch.full((2, 4), float(rank), device="musa")).sum()
    if start == 0 and step == 1 and rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    loss.backward()
# Of three steps, the mean over the ranks: each has two rows of its number, for 16 weights.
gradient = net.module.weight.grad.sum().item()
assert gradient == 3 * 2 * 16 * sum(range(dist.get_world_size())) / dist.get_world_size(), gradient
# In one write, because the ranks of a host share the file.
os.write(1, f"done {rank} {dist.get_world_size()} {start}\\n".encode())
dist.destroy_process_group()
"""


def torchrun(ranks: Ranks, folder: Path, nodes: str, restarts: int, *options: str) -> None:
    """Starts an agent on each host, which forks the ranks."""
    (folder / "train.py").write_text(TRAIN)
    code = "import torch.distributed.run\ntorch.distributed.run.main()\n"
    arguments = [
        f"--nnodes={nodes}",
        "--nproc-per-node=2",
        f"--max-restarts={restarts}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={ranks.network.hosts[0].address()}:{PORT}",
        "--rdzv-id=hosts",
        "--rdzv-conf=last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3",
        *options,
        str(folder / "train.py"),
    ]
    ranks.programs = [
        host.start(
            code,
            [*arguments[:-1], f"--local-addr={host.address()}", arguments[-1]],
            MUSA_EMULATOR_DEVICES="2",
            **QUIET,
        )
        for host in ranks.network.hosts
    ]


FORKS = ("--run-path", "--start-method=fork")


@pytest.mark.full  # half a minute
def test_torchrun_starts_again_on_both_hosts(ranks, tmp_path):
    torchrun(ranks, tmp_path, "2", 1, *FORKS)
    out = "".join(succeeded(ranks.end()))
    assert sorted(re.findall(r"done \d \d \d", out)) == [f"done {rank} 4 1" for rank in range(4)]


@pytest.mark.full
def test_torchrun_with_a_new_interpreter_per_rank(ranks, tmp_path):
    torchrun(ranks, tmp_path, "2", 1)
    out = "".join(succeeded(ranks.end()))
    assert sorted(re.findall(r"done \d \d \d", out)) == [f"done {rank} 4 1" for rank in range(4)]
