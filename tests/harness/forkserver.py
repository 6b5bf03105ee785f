# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Code run in children of one process that has imported torch, each a fork with its own environment.

An interpreter that imports torch costs two seconds of CPU, a fork of one some milliseconds. torch is imported
without its autoload. After `hide_torch()` in a child, the next `import torch` runs the autoload, and no other
part of the import, as if it were the first one.

Variables that are read while torch is imported have no effect in a child: `read_early` recognizes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# The variables that start with TORCH and that are read when the device or a group is first used, and one that
# torch.compile sets in a process that uses it.
_LATE = (
    *("TORCH_MUSA_", "TORCH_MCCL_", "TORCH_FR_"),
    *("TORCH_DEVICE_BACKEND_AUTOLOAD", "TORCHINDUCTOR_CACHE_DIR"),
)


def read_early(name: str) -> bool:
    """Whether a variable may be read before the code of a child runs."""
    return name.startswith(("TORCH", "PYTORCH", "OMP_", "KMP_", "MKL_", "MALLOC_", "LD_", "PYTHON")) and not (
        name.startswith(_LATE)
    )


PREAMBLE = """
import gc, json, os, select, signal, sys, traceback
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
sys.path[:0] = json.loads(sys.argv[1])
import torch

def hide_torch():
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "torch"}

    class Shown:
        def find_spec(self, name, path, target=None):
            if name != "torch":
                return None
            sys.meta_path.remove(self)
            from importlib.machinery import ModuleSpec
            return ModuleSpec(name, self)

        def create_module(self, spec):
            sys.modules.update(hidden)
            return hidden["torch"]

        def exec_module(self, module):
            if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
                module._import_device_backends()

    sys.meta_path.insert(0, Shown())

def run_child(request):
    os.setsid()
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    module = type(sys)("__main__")
    module.hide_torch = hide_torch
    sys.modules["__main__"] = module
    exec(compile(request["code"], "<child>", "exec"), module.__dict__)

def serve():
    # A child leaves the loop, and ends as an interpreter does.
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            print(wait_for(request["wait"], request["timeout"]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            return request
        print(pid, flush=True)
    return None

def wait_for(pid, timeout):
    end = os.pidfd_open(pid)
    if not select.select([end], [], [], max(0, timeout))[0]:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has not come to its os.setsid() yet
            os.kill(pid, signal.SIGKILL)
    os.close(end)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

# The garbage collector of a child, which also runs at its end, would write to every object of torch: copying
# their pages costs half a second.
gc.collect()
gc.freeze()
print("ready", flush=True)
request = serve()
if request is not None:
    run_child(request)
"""


class Fork:
    """Code that runs in a fork of a server; `wait` for its end exactly once."""

    def __init__(self, server: ForkServer, code: str, environment: dict[str, str], cwd: str) -> None:
        self._server = server
        self._code = code
        self._folder = tempfile.TemporaryDirectory()
        os.chmod(self._folder.name, 0o777)  # a child may be of another user
        self._out, self._err = (Path(self._folder.name, name) for name in ("out", "err"))
        request = {"code": code, "environment": environment, "cwd": cwd}
        self.pid = int(server._request(request | {"out": str(self._out), "err": str(self._err)}))

    def wait(self, timeout: float) -> subprocess.CompletedProcess[str]:
        """Its status and output. After `timeout` seconds it is killed, with the processes that it started."""
        status = int(self._server._request({"wait": self.pid, "timeout": timeout}))
        texts = [path.read_text(errors="replace") if path.exists() else "" for path in (self._out, self._err)]
        self._folder.cleanup()
        return subprocess.CompletedProcess(self._code, status, *texts)


class ForkServer:
    """A process with torch, and `run` to run code in forks of it.

    Args:
        path (tuple of str): put in front of `sys.path` before torch is imported.
        environment (dict of str to str): variables that torch's libraries read while they load.
        options (str): options of the interpreter.
    """

    def __init__(
        self, *options: str, path: tuple[str, ...] = (), environment: dict[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", PREAMBLE, json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout.readline() == "ready\n"

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _request(self, request: dict) -> str:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the server of forks has ended"
        return answer

    def start(self, code: str, environment: dict[str, str] | None = None, cwd: str = "/") -> Fork:
        """Start code in a fork, in which torch is imported without its autoload."""
        return Fork(self, code, dict(os.environ) if environment is None else environment, cwd)

    def run(
        self, code: str, environment: dict[str, str] | None = None, cwd: str = "/", timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run code as `start` does, and return its status and output."""
        return self.start(code, environment, cwd).wait(timeout)
