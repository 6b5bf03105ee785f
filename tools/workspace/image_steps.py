# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Executes the instructions of a Dockerfile in a folder that holds a system, without a container daemon.

`workspace.images` runs this script as root with the Python of the release tools, which has dockerfile-
parse. It knows the instructions that the Dockerfiles of this tree have and refuses others. The folder is
changed in place; what a later Dockerfile inherits from its FROM (environment, user, folder) is in a file
beside it.

The commands get the machine's settings of pip and of its certificates, with the files that those name.
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

# Settings of the machine that a build would get from its proxy: variables, whose value may be a path.
SETTINGS = re.compile(
    r"PIP_(FIND_LINKS|CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)$|(?i:https?|no)_proxy$"
)
TAIL = 2  # lines of a command in the record; all of them are in its log
WIDTH = 160


@dataclass
class Image:
    """What an image has beside its files."""

    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    user: str = "0:0"
    folder: str = "/"
    healthcheck: list[str] = field(default_factory=list)


@dataclass
class Step:
    """An instruction and how it ended."""

    line: int
    instruction: str
    text: str
    status: int = 0
    output: list[str] = field(default_factory=list)


class UnknownInstructionError(Exception):
    """An instruction that is not executed here."""


def expand(text: str, variables: dict[str, str]) -> str:
    """`$NAME` and `${NAME}` replaced, as in ENV, USER and FROM; a variable that is not set is empty."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda match: variables.get(match[1] or match[2], ""), text)


def home_of(root: Path, user: str) -> str:
    """The home folder of a user, given as uid:gid."""
    for line in (root / "etc" / "passwd").read_text().splitlines():
        fields = line.split(":")
        if fields[2] == user.partition(":")[0]:
            return fields[5]
    return "/"


def machine_settings() -> tuple[dict[str, str], dict[Path, str]]:
    """Variables for the commands, and the files and folders to mount for them."""
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
    """Shell commands that mount a file or folder in the system."""
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
    """The command line that runs a command of the system in namespaces of its own.

    mounts: files and folders of the machine, which the command finds at these paths and cannot change.
    changed: folders that it finds at their own path and can change.
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
    """Runs a command of the system in namespaces of its own; returns status and end of the output."""
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
    """The last lines of an output, without those that name a place of the machine's network."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip() and "://" not in line]
    return [line[:WIDTH] for line in lines[-TAIL:]]


def flags(text: str) -> tuple[dict[str, str], str]:
    """The options before an instruction's text, as `--mount=...`, and the rest."""
    found = {}
    while match := re.match(r"--([\w-]+)=(\S+)\s+", text):
        found[match[1]] = match[2]
        text = text[match.end() :]
    return found, text


class Build:
    """One Dockerfile, executed."""

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
        self.arguments = {}  # those before FROM are for FROM alone

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
        json.loads(value)  # a list; nothing runs while an image is built

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
    """Executes the instructions up to the first that fails, and the health check."""
    from dockerfile_parse import (
        DockerfileParser,
    )  # of the release tools; the rest of this module runs without

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
