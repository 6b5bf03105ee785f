# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Code run in children of one process that has imported torch, each a fork with its own environment.

An interpreter that imports torch costs two seconds of CPU, a fork of one some milliseconds. torch is imported
without its autoload; a child makes `import torch` count as its first with `hide_torch()`, so that the
autoload, and nothing else of the import, runs at the place where the code has it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PREAMBLE = """
import json, os, select, signal, sys, traceback
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
        pid = os.fork()
        if pid == 0:
            return request
        end = os.pidfd_open(pid)
        if not select.select([end], [], [], request["timeout"])[0]:
            os.killpg(pid, signal.SIGKILL)
        os.close(end)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    return None

print("ready", flush=True)
request = serve()
if request is not None:
    run_child(request)
"""


class ForkServer:
    """A process with torch, and `run` to run code in forks of it.

    Args:
        path (list of str): put in front of `sys.path` before torch is imported.
        options (str): of the interpreter.
    """

    def __init__(self, *options: str, path: tuple[str, ...] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", PREAMBLE, json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(
        self,
        code: str,
        environment: dict[str, str] | None = None,
        cwd: str = "/",
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run code in a fork. It starts with torch imported, without its autoload; it ends as an interpreter.

        Past `timeout` seconds it is ended by a signal, with what it has started.
        """
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)  # a child may be of another user
            out, err = Path(folder, "out"), Path(folder, "err")
            request = {
                "code": code,
                "environment": dict(os.environ) if environment is None else environment,
                "cwd": cwd,
                "timeout": timeout,
                "out": str(out),
                "err": str(err),
            }
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, "the server of forks has ended"
            return subprocess.CompletedProcess(
                code, int(answer), out.read_text(errors="replace"), err.read_text(errors="replace")
            )
