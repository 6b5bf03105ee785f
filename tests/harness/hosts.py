# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Several hosts on one machine, joined by switches: each has its own network, pids, host name and /proc.

A host is a process in new namespaces, with pid 1 in them. It has imported torch and forks the ranks that run
on the host, so that no interpreter is started for a rank. The namespaces have no names on the machine, and
end with their processes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = ("--net", "--uts", "--ipc", "--pid", "--mount-proc", "--fork", "--kill-child")
PREFIXES = ("MUSA_", "MCCL_", "TORCH_MCCL_", "TORCH_FR_")
PATIENCE = 120.0  # seconds for a host to start, and for the ranks of a test to end


def why_not() -> str | None:
    """Why this machine cannot make such hosts, or None."""
    if os.geteuid() != 0:
        return "not root"
    missing = [tool for tool in ("unshare", "nsenter", "ip") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    # The hosts need a kernel with namespaces that have a /proc, and pairs of interfaces on a bridge.
    probe = "ip link add switch0 type bridge && ip link add port0 type veth peer name eth0"
    probe += " && ip link set port0 master switch0"
    done = subprocess.run(["unshare", *NAMESPACES, "sh", "-c", probe], capture_output=True, text=True)
    return None if done.returncode == 0 else f"namespaces are not permitted here: {done.stderr.strip()}"


@dataclass
class Ended:
    """A rank or program that has ended; `status` is None if its host vanished, negative after a signal."""

    status: int | None
    out: str
    err: str


class Host:
    """One host. Its interfaces are eth0, eth1, ... on the switches, with address 10.77.<switch>.<number>."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number = number
        self.name = f"host-{number}"
        self._folder = folder
        self._files = 0
        environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        names = folder / f"{self.name}.names"
        names.write_text(f"127.0.0.1 localhost\n{self.address()} {self.name}\n")
        command = ["unshare", *NAMESPACES, sys.executable, "-m", "tests.harness.hosts", self.name, str(names)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT
        )

    def wait_until_up(self) -> None:
        assert json.loads(self._process.stdout.readline()) == "up"

    @property
    def pid(self) -> int:
        """The pid of the host's first process in this process's namespace."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        deadline = time.monotonic() + PATIENCE
        while not (found := children.read_text().split()):
            assert time.monotonic() < deadline, "the host does not start"
            time.sleep(0.01)
        return int(found[0])

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def address(self, switch: int = 0) -> str:
        return f"10.77.{switch}.{self.number}"

    def _request(self, **order: object) -> object:
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"{self.name} has ended"
        return json.loads(line)

    def start(self, code: str, arguments: Sequence[str] = (), **environment: str) -> Program:
        """Start Python code in a fork of the host's process, with `sys.argv` and variables."""
        self._files += 1
        files = [str(self._folder / f"{self.name}.{self._files}.{kind}") for kind in ("out", "err")]
        for file in files:  # a program's output may be read before the program has opened the file
            Path(file).touch()
        order = {"code": code, "arguments": list(arguments), "environment": environment, "files": files}
        return Program(self, self._request(start=order), files)

    def status_of(self, pid: int) -> int | None:
        return self._request(status=pid)

    def end_programs(self) -> None:
        """Kill the programs that still run on this host, for instance those of a failed test."""
        self._request(end=True)

    def vanish(self) -> None:
        """Kill every process of the host at once, and its network with it."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@dataclass
class Program:
    host: Host
    pid: int  # within the host
    files: list[str]

    def out(self) -> str:
        return Path(self.files[0]).read_text()

    def wait(self, deadline: float) -> Ended:
        status = None
        while self.host.alive and (status := self.host.status_of(self.pid)) is None:
            assert time.monotonic() < deadline, f"a program of {self.host.name} does not end:{self.texts()}"
            time.sleep(0.02)
        out, err = (Path(file).read_text() for file in self.files)
        return Ended(status, out, err)

    def texts(self) -> str:
        return "".join(f"\n--- {file}\n{Path(file).read_text()}" for file in self.files)


class Network:
    """Hosts 1, 2, ... on switches 0, 1, ...: switch s joins the interfaces eth<s> of all hosts."""

    def __init__(self, hosts: int, folder: Path, switches: int = 2) -> None:
        self._folder = folder
        self._made = 0
        # The switches are bridges in a network of their own, which ends when this process does.
        self._center = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self.switches = switches
        self.hosts: list[Host] = []
        try:
            self._wait_for_center()
            for switch in range(switches):
                self._run("ip", "link", "add", f"switch{switch}", "up", "type", "bridge")
            self.hosts = [self._start() for _ in range(hosts)]
            for host in self.hosts:
                self._connect(host)
        except BaseException:
            self.close()
            raise

    def _wait_for_center(self) -> None:
        """Waits until the process of the switches has left this network namespace."""
        own = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + PATIENCE
        while os.readlink(f"/proc/{self._center.pid}/ns/net") == own:
            assert time.monotonic() < deadline, "there is no network for the switches"
            time.sleep(0.01)

    def _run(self, *command: str, host: Host | None = None) -> str:
        pid = self._center.pid if host is None else host.pid
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{pid}/ns/net", *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def _start(self) -> Host:
        self._made += 1
        return Host(self._made, self._folder)

    def _connect(self, host: Host) -> None:
        host.wait_until_up()  # and so in its namespaces
        self._run("ip", "link", "set", "lo", "up", host=host)
        for switch in range(self.switches):
            port = self._port(host, switch)
            eth = f"eth{switch}"
            self._run("ip", "link", "add", port, "type", "veth", "peer", "name", eth, "netns", str(host.pid))
            self._run("ip", "link", "set", port, "up", "master", f"switch{switch}")
            self._run("ip", "address", "add", f"{host.address(switch)}/24", "dev", eth, host=host)
            self._run("ip", "link", "set", eth, "up", host=host)

    def _port(self, host: Host, switch: int) -> str:
        return f"port{host.number}.{switch}"

    def end_programs(self) -> None:
        for host in self.hosts:
            if host.alive:
                host.end_programs()

    def repair(self) -> None:
        """Start new hosts in place of those that have vanished, and connect all of them again."""
        for index, host in enumerate(self.hosts):
            if not host.alive:
                host.close()
                self.hosts[index] = self._start()
                self._connect(self.hosts[index])
        for switch in range(self.switches):
            for host in self.hosts:
                self.plug(host, switch)
                self._isolate(host, switch, "off")

    def drop(self, switch: int) -> None:
        """Makes the switch silently drop all packets between hosts, as a firewall does."""
        for host in self.hosts:
            for other in self.hosts:
                if other is not host:
                    # The other's hardware address stays known: packets are sent and lost, not refused.
                    what = f"{other.address(switch)} lladdr {self._mac(other, switch)} dev eth{switch}"
                    self._run("ip", "neighbour", "replace", *what.split(), "nud", "permanent", host=host)
            self._isolate(host, switch, "on")

    def _isolate(self, host: Host, switch: int, state: str) -> None:
        """Isolated ports of a bridge exchange no packets with each other."""
        self._run("ip", "link", "set", self._port(host, switch), "type", "bridge_slave", "isolated", state)

    def _mac(self, host: Host, switch: int) -> str:
        return json.loads(self._run("ip", "-j", "link", "show", f"eth{switch}", host=host))[0]["address"]

    def unplug(self, host: Host, switch: int) -> None:
        self._run("ip", "link", "set", self._port(host, switch), "down")

    def plug(self, host: Host, switch: int) -> None:
        self._run("ip", "link", "set", self._port(host, switch), "up")

    def run(self, programs: Sequence[Program], patience: float = PATIENCE) -> list[Ended]:
        """Wait until the programs have ended."""
        deadline = time.monotonic() + patience
        return [program.wait(deadline) for program in programs]

    def close(self) -> None:
        for host in self.hosts:
            host.close()
        self._center.communicate()


# ---- the process of a host


def _run_code(order: dict) -> None:
    """Runs in a fork: replaces the standard streams, then runs the code."""
    out, err = (os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for file in order["files"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, stream in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(ours, stream)
    sys.stdin = os.fdopen(0)
    # Python closes these objects before the process ends; later output of libraries must still be written.
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(os.fdopen(stream, "wb", 0, closefd=False), write_through=True) for stream in (1, 2)
    )
    os.environ.update(order["environment"])
    sys.argv = ["program", *order["arguments"]]
    main = {"__name__": "__main__", "__file__": "program"}
    exec(compile(order["code"], "program", "exec"), main)


def _serve() -> None:
    """Runs in the first process of a host: reads one order per line and writes one answer per line."""
    name, names = sys.argv[1:]
    socket.sethostname(name)
    # Replaces /etc/hosts for this host alone, so that it resolves its own name without a name server.
    subprocess.run(["mount", "--bind", names, "/etc/hosts"], check=True)
    import torch
    import torch.distributed.fsdp
    import torch.distributed.run

    assert torch.device("musa").type == "musa"  # the ranks set their device up, not this process
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    orders = os.fdopen(os.dup(0), "r")
    print(json.dumps("up"), file=answers)
    statuses: dict[int, int] = {}
    for line in orders:
        order = json.loads(line)
        if "start" in order:
            pid = os.fork()
            if pid == 0:
                _end_with(order["start"])
            answer = pid
        elif "end" in order:
            with contextlib.suppress(ProcessLookupError):  # there is none
                os.kill(-1, signal.SIGKILL)  # every other process of this namespace
            answer = None
        else:
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:  # orphans of programs too
                    statuses[ended[0]] = os.waitstatus_to_exitcode(ended[1])
            answer = statuses.get(order["status"])
        print(json.dumps(answer), file=answers)


def _end_with(order: dict) -> None:
    status = 1
    try:
        _run_code(order)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:  # noqa: BLE001 - a program's exception, as the interpreter prints it
        traceback.print_exc()
    sys.exit(status)  # runs atexit functions, as at the end of a program


@contextlib.contextmanager
def network(hosts: int, folder: Path) -> Iterator[Network]:
    made = Network(hosts, folder)
    try:
        yield made
    finally:
        made.close()


if __name__ == "__main__":
    _serve()
