# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators of running processes, for `python -m torch_musa top`.

With `TORCH_MUSA_TOP=1`, a process listens on a Unix socket from its first use of the device on, and writes
the counters of `torch.musa.ops` to each connection. The socket is in Linux' abstract namespace, so it has no
file and ends with the process. Only processes of the same user and root get an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import struct
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "TORCH_MUSA_TOP"
_SECONDS = 2.0  # for a peer that stops reading or writing
_NAME = re.compile(r"@torch_musa/(\d+)/(\d+)$")  # user and process
_CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


def register() -> None:
    """Lets the process answer from its first use of the device on, if the environment says so."""
    if os.environ.get(VARIABLE):
        from musa_runtime.initialization import call_when_initialized

        call_when_initialized(_start, ("live_operators",))


def _start() -> None:
    from musa_runtime import switches

    if not switches.flag(VARIABLE):
        return
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0torch_musa/{os.getuid()}/{os.getpid()}")
    listener.listen()
    # A forked child cannot use the device, and would keep the parent's name in use.
    os.register_at_fork(after_in_child=listener.close)
    threading.Thread(target=_serve, args=(listener,), name="torch_musa top", daemon=True).start()


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        # The peer may end at any time, and its failure must not end the service.
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_SECONDS)
            if _peer(connection)[1] in (os.getuid(), 0):
                connection.sendall(json.dumps(_counts()).encode())


def _counts() -> dict[str, Any]:
    from musa_runtime import ops

    return {
        "pid": os.getpid(),
        "command": " ".join(sys.orig_argv),
        "operators": [
            {"op": row["op"], "provider": candidate["provider"], "calls": candidate["calls"]}
            for row in ops.table()
            if row["calls"]
            for candidate in ops.explain(row["op"])["candidates"]
            if candidate["calls"]
        ],
    }


def _peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(data)
    return process, user


def query() -> list[dict[str, Any]]:
    """Returns the answer of each process that publishes its operators, sorted by process.

    Returns:
        list of dict: `pid`, `command`, and `operators`, a list of `{op, provider, calls}`; `problem` in place
        of the latter two for a process that does not answer in time.
    """
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        found = {match.groups() for line in table if (match := _NAME.search(line.rstrip("\n")))}
    user = os.getuid()
    processes = {int(pid): int(owner) for owner, pid in found if user in (0, int(owner))}
    answers = (_query(pid, owner) for pid, owner in sorted(processes.items()))
    return [answer for answer in answers if answer is not None]


def _query(pid: int, owner: int) -> dict[str, Any] | None:
    """Returns the answer of one process; None if it has ended, or is not the process of that name."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(f"\0torch_musa/{owner}/{pid}")
            if _peer(connection) != (pid, owner):
                return None
            data = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except TimeoutError:
            return {"pid": pid, "problem": f"no answer in {_SECONDS:.0f} s; the process may be stopped"}
        except OSError:
            return None
    try:
        return json.loads(data)
    except ValueError:  # the process ended while it wrote
        return None
