# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The metadata that a wheel needs on a package index: what is added to it, and what is wrong with it.

Added after the build, because it is the same for all packages or depends on the compiled libraries: the
address of the repository, licences of code that the libraries contain, and links of the README, which are
relative in the tree and lead nowhere on an index.
"""

import re
from collections.abc import Iterable, Mapping
from email.message import Message
from email.parser import Parser
from pathlib import PurePosixPath

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s]+)\)")
NEEDED = ("Summary", "License-Expression", "Author", "Requires-Python", "Description-Content-Type")
NO_REPOSITORY = "no address: set `repository` in [tool.musa] of pyproject.toml"


def resolve(target: str, folder: str) -> str:
    """The path from the root of the tree that a link of a README in `folder` names."""
    parts: list[str] = []
    for part in (*PurePosixPath(folder).parts, *PurePosixPath(target).parts):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def absolute_links(text: str, folder: str, repository: str, version: str) -> str:
    """The README of the package in `folder` with links that do not depend on where it is read.

    repository: its address; if it is "", links become their text and the path of the file in the source tree.
    """

    def replace(match: re.Match[str]) -> str:
        label, target = match.groups()
        path = resolve(target, folder)
        if repository:
            return f"[{label}]({repository}/blob/v{version}/{path})"
        return label if path in label else f"{label} (`{path}`)"

    return LINK.sub(replace, text)


def completed(
    text: str, *, folder: str, repository: str, version: str, license_files: Iterable[str] = ()
) -> str:
    """The text of METADATA with the repository, further licence files, and a README that reads alone."""
    head, _, description = text.partition("\n\n")
    lines = head.splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith(("License-", "Version:")))
    lines[last + 1 : last + 1] = [f"License-File: {name}" for name in license_files]
    if repository:
        lines.append(f"Project-URL: Repository, {repository}")
        lines.append(f"Project-URL: Changelog, {repository}/blob/v{version}/CHANGELOG.md")
    return "\n".join(lines) + "\n\n" + absolute_links(description, folder, repository, version)


def problems(text: str, files: Iterable[str]) -> list[str]:
    """What a wheel's METADATA lacks. files: names in its .dist-info folder."""
    metadata = Parser().parsestr(text)
    found = [f"METADATA has no {name}" for name in NEEDED if not metadata[name]]
    licenses = metadata.get_all("License-File", [])
    if "LICENSE" not in licenses:
        found.append("METADATA has no License-File: LICENSE")
    found += [
        f"METADATA names the licence {name}, and the wheel does not have it"
        for name in licenses
        if f"licenses/{name}" not in files
    ]
    if not metadata.get_all("Classifier"):
        found.append("METADATA has no Classifier")
    description = metadata.get_payload()
    if not str(description).strip():
        found.append("the description is empty")
    found += [
        f"the description has the link {match.group(2)}, which leads nowhere on an index"
        for match in LINK.finditer(str(description))
    ]
    return found


def unsettled(text: str) -> list[str]:
    """What the owner of a release has yet to decide before the wheel can be uploaded."""
    urls = Parser().parsestr(text).get_all("Project-URL", [])
    return [] if urls else [NO_REPOSITORY]


def requirements(metadata: Message) -> list[Mapping[str, str]]:
    """Name and text of each requirement that is not one of an extra."""
    listed = metadata.get_all("Requires-Dist", [])
    plain = [text for text in listed if not re.search(r"\bextra\s*==", text)]
    return [{"name": re.split(r"[\s<>=!~;\[(]", text)[0], "text": text} for text in plain]
