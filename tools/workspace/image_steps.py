# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Executes the instructions of a Dockerfile in a root file system, without a container daemon.

`workspace.images` runs this script as root with the Python of the release tools, which has dockerfile-
parse. It supports the instructions used by the Dockerfiles of this tree and rejects others. The folder is
changed in place. State that a later Dockerfile inherits by FROM (environment, user, folder) is stored in a
file next to it.

Commands receive the machine's settings of pip and certificates, with the files that they name.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Settings that a build would otherwise get from its proxy: variables, whose values may be paths.
SETTINGS = re.compile(
    r"PIP_(FIND_LINKS|CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)$|(?i:https?|no)_proxy$"
)
TAIL = 2  # lines of output in the record; the log has all of them
WIDTH = 160


@dataclass
class Image:
    """The configuration of an image."""

    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    user: str = "0:0"
    folder: str = "/"
    healthcheck: list[str] = field(default_factory=list)


@dataclass
class Step:
    """An instruction and its result."""

    line: int
    instruction: str
    text: str
    status: int = 0
    output: list[str] = field(default_factory=list)


class UnknownInstructionError(Exception):
    """An instruction that is not supported."""


def expand(text: str, variables: dict[str, str]) -> str:
    """Replaces `$NAME` and `${NAME}` as in ENV, USER and FROM; unset variables are empty."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda match: variables.get(match[1] or match[2], ""), text)


def home_of(root: Path, user: str) -> str:
    """Returns the home folder of a user, given as uid:gid."""
    for line in (root / "etc" / "passwd").read_text().splitlines():
        fields = line.split(":")
        if fields[2] == user.partition(":")[0]:
            return fields[5]
    return "/"


def machine_settings() -> tuple[dict[str, str], dict[Path, str]]:
    """Returns variables for the commands, and the files and folders to mount for them."""
    variables, mounts = {}, {}
    for name, value in os.environ.items():
        if SETTINGS.match(name):
            path = Path(value)
            inside = f"/run/host/{name}"
            variables[name] = inside if path.is_absolute() and path.exists() else value
            if variables[name] == inside:
                mounts[path] = inside
    return variables, mounts


def mount(root: Path, source: Path, inside: str, *, writable: bool = False) -> str:
    """Returns shell commands that mount a file or folder in the system."""
    target = shlex.quote(f"{root}{inside}")
    place = f"mkdir -p {target}" if source.is_dir() else f"mkdir -p $(dirname {target}) && touch {target}"
    options = "" if writable else "-o ro "
    return f"{place} && mount --bind {options}{shlex.quote(str(source))} {target}"


def command_in(
    root: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    mounts: Mapping[Path, str],
    *,
    user: str = "0:0",
    folder: str = "/",
    changed: Sequence[Path] = (),
) -> list[str]:
    """Returns the command line that runs a command of the system in separate namespaces.

    mounts: files and folders of the machine, mounted read-only at these paths.
    changed: folders mounted writable at their own path.
    """
    settings, needed = machine_settings()
    setup = [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
    setup += [f"cp -L /etc/resolv.conf {root}/etc/resolv.conf"]
    setup += [mount(root, source.resolve(), inside) for source, inside in {**needed, **mounts}.items()]
    setup += [mount(root, source, str(source), writable=True) for source in changed]
    pairs = [f"{name}={value}" for name, value in {**settings, **environment}.items()]
    inner = ["chroot", f"--userspec={user}", str(root), "/usr/bin/env", "-i", f"--chdir={folder}"]
    script = " && ".join([*setup, "exec " + shlex.join([*inner, *pairs, *command])])
    return ["unshare", "--mount", "--pid", "--fork", "bash", "-c", script]


def execute(root: Path, image: Image, command: list[str], mounts: dict[Path, str], **variables: str) -> Step:
    """Runs a command of the system in separate namespaces; returns status and end of the output."""
    environment = {"HOME": home_of(root, image.user), **image.environment, **variables}
    done = subprocess.run(
        command_in(root, command, environment, mounts, user=image.user, folder=image.folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    print(done.stdout, flush=True)
    return Step(0, "", "", done.returncode, end_of(done.stdout))


def end_of(output: str) -> list[str]:
    """Returns the last lines of an output, without those that contain an address on the network."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip() and "://" not in line]
    return [line[:WIDTH] for line in lines[-TAIL:]]


def flags(text: str) -> tuple[dict[str, str], str]:
    """Returns the options before an instruction's text, such as `--mount=...`, and the rest."""
    found = {}
    while match := re.match(r"--([\w-]+)=(\S+)\s+", text):
        found[match[1]] = match[2]
        text = text[match.end() :]
    return found, text


class Build:
    """The execution of a Dockerfile."""

    def __init__(self, root: Path, context: Path, image: Image, arguments: dict[str, str]) -> None:
        self.root = root
        self.context = context
        self.image = image
        self.given = arguments
        self.arguments: dict[str, str] = {}
        self.shell = ["/bin/sh", "-c"]

    @property
    def variables(self) -> dict[str, str]:
        return {**self.arguments, **self.image.environment}

    def step(self, line: int, instruction: str, value: str) -> Step:
        """Executes an instruction."""
        method = getattr(self, f"do_{instruction.lower()}", None)
        if method is None:
            raise UnknownInstructionError(f"line {line}: {instruction} is not executed here")
        ended = method(value) or Step(0, "", "")
        return Step(line, instruction, value, ended.status, ended.output)

    def do_from(self, value: str) -> None:
        self.arguments = {}  # those before FROM apply to FROM only

    def do_arg(self, value: str) -> None:
        name, _, default = value.partition("=")
        default = expand(shlex.split(default)[0] if default and shlex.split(default) else "", self.variables)
        self.arguments[name] = self.given.get(name, default)

    def do_env(self, value: str) -> None:
        for word in shlex.split(value):
            name, _, text = word.partition("=")
            self.image.environment[name] = expand(text, self.variables)

    def do_user(self, value: str) -> None:
        self.image.user = expand(value, self.variables)

    def do_workdir(self, value: str) -> None:
        self.image.folder = os.path.join(self.image.folder, expand(value, self.variables))
        (self.root / self.image.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def do_shell(self, value: str) -> None:
        self.shell = json.loads(value)

    def do_cmd(self, value: str) -> None:
        json.loads(value)  # a list; it is not run during the build

    def do_healthcheck(self, value: str) -> None:
        _, rest = flags(value)
        self.image.healthcheck = json.loads(rest.removeprefix("CMD").strip())

    def do_run(self, value: str) -> Step:
        options, text = flags(value)
        mounts = {}
        if "mount" in options:
            fields = dict(part.split("=", 1) for part in options["mount"].split(","))
            mounts[self.context / fields["source"]] = fields["target"]
        return execute(self.root, self.image, [*self.shell, text], mounts, **self.arguments)


def build(dockerfile: Path, made: Build) -> list[Step]:
    """Executes the instructions until one fails, then the health check."""
    from dockerfile_parse import (
        DockerfileParser,
    )  # from the release tools; the rest of this module does not need them

    steps = []
    with dockerfile.open("rb") as file:
        structure = DockerfileParser(fileobj=file).structure
    for entry in sorted(structure, key=lambda entry: entry["startline"]):
        if entry["instruction"] == "COMMENT":
            continue
        steps.append(made.step(entry["startline"] + 1, entry["instruction"], entry["value"]))
        print(
            f"{dockerfile.name}:{steps[-1].line}: {steps[-1].instruction}: status {steps[-1].status}",
            flush=True,
        )
        if steps[-1].status != 0:
            return steps
    if made.image.healthcheck:
        ended = execute(made.root, made.image, made.image.healthcheck, {})
        steps.append(
            Step(0, "the health check", shlex.join(made.image.healthcheck), ended.status, ended.output)
        )
        print(f"{dockerfile.name}: health check: status {ended.status}", flush=True)
    return steps


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--context", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--build-arg", action="append", default=[])
    chosen = parser.parse_args(arguments)
    state = chosen.root.with_suffix(".json")
    image = Image(**json.loads(state.read_text())) if state.is_file() else Image()
    given = dict(text.split("=", 1) for text in chosen.build_arg)
    steps = build(chosen.dockerfile, Build(chosen.root.resolve(), chosen.context.resolve(), image, given))
    chosen.log.write_text(json.dumps([asdict(step) for step in steps], indent=1))
    state.write_text(json.dumps(asdict(image)))
    return int(any(step.status != 0 for step in steps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
