# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The Dockerfiles: the linter, the executor of `dev.py images --execute`, and the record of its last run."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from workspace import WorkspaceError, image_steps, images, release

pytestmark = pytest.mark.once


def instructions(text: str) -> list[tuple[str, str]]:
    """Instructions and their texts, with white space reduced to one space."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    found = [re.match(r"([A-Z]+)\s+(.*)", line) for line in joined.splitlines() if line.strip()]
    return [(match[1], " ".join(match[2].split())) for match in found]


def stale(record: dict, texts: dict[str, str]) -> list[str]:
    """Images whose record does not match these Dockerfiles."""
    found = []
    for name, text in texts.items():
        steps = [step for step in record["images"].get(name, {"steps": []})["steps"] if step["line"]]
        recorded = [(step["instruction"], " ".join(step["text"].split())) for step in steps]
        if recorded != instructions(text):
            found.append(f"{name}: the record is of another Dockerfile; run dev.py images --execute")
    return found


def dockerfiles() -> dict[str, str]:
    return {name: (images.DOCKERFILES / f"{name}.Dockerfile").read_text() for name in images.IMAGES}


def test_every_instruction_was_executed():
    record = json.loads(images.RECORD.read_text())
    assert stale(record, dockerfiles()) == []
    assert images.failures(record["images"], images.IMAGES) == []
    for name in sorted(set(images.IMAGES) - {"base"}):
        [health] = [step for step in record["images"][name]["steps"] if step["line"] == 0]
        assert health["text"] == "python -m torch_musa doctor"


def test_a_failed_and_a_missing_step_are_found():
    record = json.loads(images.RECORD.read_text())
    record["images"]["base"]["steps"][2]["status"] = 1
    record["images"].pop("dev", None)
    line = record["images"]["base"]["steps"][2]["line"]
    found = images.failures(record["images"], ["base", "release", "dev"])
    assert found == ["dev: not executed", f"base: line {line} ended with status 1"]
    changed = {**dockerfiles(), "release": dockerfiles()["release"].replace("pluggy", "pluggy ")}
    assert stale(record, {"release": changed["release"]}) == []
    changed["release"] = changed["release"].replace("pluggy", "flask")
    assert [text.partition(":")[0] for text in stale(record, changed)] == ["release", "dev"]


def test_the_dockerfiles_are_all_in_the_list():
    found = {path.name.removesuffix(".Dockerfile") for path in images.DOCKERFILES.glob("*.Dockerfile")}
    assert found == set(images.IMAGES)


def test_images_run_without_rights():
    assert "USER 1000:1000" in dockerfiles()["base"]
    users = [value for name, value in instructions(dockerfiles()["dev"]) if name == "USER"]
    assert users[-1] == "1000:1000"


# -- the executor


@pytest.fixture
def made(tmp_path) -> image_steps.Build:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\nmusa:x:1000:1000::/var/musa:/bin/sh\n"
    )
    return image_steps.Build(root, tmp_path, image_steps.Image(), {"A": "given"})


def test_arguments_and_variables(made):
    for instruction, value in (
        ("FROM", "${BASE}"),
        ("ARG", "A=default"),
        ("ARG", 'B="x ${A}"'),
        ("ENV", 'C=${B}/y D="d $A"'),
        ("USER", "1000:1000"),
        ("WORKDIR", "/a"),
        ("WORKDIR", "b"),
        ("SHELL", '["/bin/bash", "-c"]'),
        ("HEALTHCHECK", '--interval=5m --start-period=10s CMD ["python", "-V"]'),
    ):
        assert made.step(1, instruction, value).status == 0
    assert made.arguments == {"A": "given", "B": "x given"}
    assert made.image.environment["C"] == "x given/y" and made.image.environment["D"] == "d given"
    assert (made.image.user, made.image.folder) == ("1000:1000", "/a/b") and (made.root / "a" / "b").is_dir()
    assert made.shell == ["/bin/bash", "-c"] and made.image.healthcheck == ["python", "-V"]
    assert image_steps.home_of(made.root, "1000:1000") == "/var/musa"


def test_an_unknown_instruction_is_refused(made):
    with pytest.raises(image_steps.UnknownInstructionError, match="line 3: ADD"):
        made.step(3, "ADD", "a b")


def test_lines_with_addresses_are_left_out_of_the_record():
    assert image_steps.end_of("one\nGet: http://mirror/x\n\ntwo\n") == ["one", "two"]


def test_images_of_one_suite_can_be_executed(tmp_path, monkeypatch):
    """The entries of the other suites stay in the record; an image whose base failed is not executed."""
    step = {"line": 1, "instruction": "RUN", "text": "true", "output": []}
    entry = {"arguments": [], "steps": [{**step, "status": 0}]}
    monkeypatch.setattr(images, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(images, "make_system", lambda suite: tmp_path / suite)
    monkeypatch.setattr(images.prerequisites, "ensure", lambda needed: None)
    monkeypatch.setattr(images, "lint", lambda files: [])
    monkeypatch.setattr(release, "install_tools", lambda: None)
    monkeypatch.setattr(images, "execute_image", lambda name, arguments, root: entry)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert images.run(executed=True, suites=["bookworm"]) == 0

    def failing(name, arguments, root):
        return {**entry, "steps": [{**step, "status": 7}]}

    monkeypatch.setattr(images, "execute_image", failing)
    with pytest.raises(WorkspaceError, match=r"^oldest: line 1 ended with status 7$"):
        images.run(executed=True, suites=["bullseye"])
    with pytest.raises(WorkspaceError, match=r"^release: not executed\ndev: not executed\nbase: line 1"):
        images.run(executed=True, suites=["bookworm"])
    recorded = json.loads(images.RECORD.read_text())["images"]
    assert list(recorded) == ["oldest", "base"]
    with pytest.raises(WorkspaceError, match="no image begins with sid; the suites are bookworm, bullseye"):
        images.run(executed=True, suites=["sid"])


def test_executing_without_rights_is_refused(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(WorkspaceError, match=r"Fix: sudo python3 tools/dev\.py images"):
        images.execute(["bookworm"])


@pytest.mark.full
@pytest.mark.slow
def test_hadolint_refuses_a_bad_dockerfile(tmp_path):
    release.install_tools()
    files = [images.DOCKERFILES / f"{name}.Dockerfile" for name in images.IMAGES]
    assert images.lint(files) == []
    bad = Path(tmp_path, "bad.Dockerfile")
    bad.write_text("FROM debian:bookworm\nRUN cd /tmp && sudo make\nRUN wget x | bash\n")
    [found] = images.lint([bad])
    assert "DL3003" in found and "DL4006" in found
