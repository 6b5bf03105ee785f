# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies of the working tree in which faults are built and tested."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from .faults import Fault

ROOT = Path(__file__).resolve().parents[2]
GIT = ("git", "-C", str(ROOT))


class Overlay:
    """The working tree in a mount namespace, where changes are written to another folder. Needs root.

    Args:
        cores (list of int): the processor's cores that commands may use.
    """

    def __init__(self, cores: list[int]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mutation-"))
        self.root = ROOT
        self.jobs = len(cores) + 1  # processes of tests, as dev.py runs
        self.prefix = ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", ",".join(map(str, cores))]
        self.prefix += self._make()
        self.reset()

    def _make(self) -> list[str]:
        """Makes the copy. Returns the command that enters it."""
        options = f"lowerdir={ROOT},upperdir={self.folder}/upper,workdir={self.folder}/work"
        # The shell changes to the folder again, because its working directory is below the mount.
        script = f'mount -t overlay overlay -o {options} "$0" && cd "$0" && "$@"'
        return ["unshare", "--mount", "--pid", "--kill-child", "--mount-proc", "sh", "-c", script, str(ROOT)]

    def apply(self, fault: Fault) -> None:
        path = self.folder / "upper" / fault.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((ROOT / fault.file).read_text().replace(fault.before, fault.after))

    def reset(self) -> None:
        for name in ("upper", "work"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir()

    def run(self, arguments: list[str], limit: float) -> tuple[int | None, str]:
        """Runs tools/dev.py. Returns its status, None if `limit` seconds have passed, and its output."""
        scratch = self.folder / "tmp"  # empty, so that caches of another fault are not used
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        env = {**os.environ, "TMPDIR": str(scratch), "TORCH_EXTENSIONS_DIR": str(scratch / "extensions")}
        command = [*self.prefix, sys.executable, "tools/dev.py", *arguments]
        with (self.folder / "log").open("w+") as log:
            process = subprocess.Popen(
                command, cwd=self.root, env=env, stdout=log, stderr=log, start_new_session=True
            )
            try:
                process.wait(max(limit, 0))
            except subprocess.TimeoutExpired:
                pass
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    process.returncode = None
            log.seek(0)
            return process.returncode, log.read()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class Worktree(Overlay):
    """A git worktree with its own environment and builds."""

    applied: str | None = None

    def _make(self) -> list[str]:
        self.root = self.folder / "upper"
        subprocess.run([*GIT, "worktree", "add", "--detach", "--quiet", str(self.root)], check=True)
        return []

    def apply(self, fault: Fault) -> None:
        super().apply(fault)
        self.applied = fault.file

    def reset(self) -> None:
        if self.applied is not None:
            shutil.copyfile(ROOT / self.applied, self.root / self.applied)

    def remove(self) -> None:
        subprocess.run([*GIT, "worktree", "remove", "--force", str(self.root)], check=True)
        super().remove()


def make(count: int) -> list[Overlay]:
    """Returns copies, among which the cores are divided."""
    cores = sorted(os.sched_getaffinity(0))
    system = subprocess.check_output(["stat", "--file-system", "--format=%T", str(ROOT)], text=True).strip()
    # In an overlay on an overlay, /proc/self/maps has wrong paths, by which tests find loaded libraries.
    kind = Overlay if os.geteuid() == 0 and system != "overlayfs" else Worktree
    return [kind(cores[slot::count] or cores) for slot in range(count)]
