# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Adds the metadata that a wheel needs on a package index, and checks it.

Added after the build, because it is the same for all packages or depends on the compiled libraries: the
repository's address, licences of third-party code in the libraries, and absolute links in the README, whose
relative links do not work on an index.
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
    """Returns the path from the root of the tree for a link of a README in `folder`."""
    parts: list[str] = []
    for part in (*PurePosixPath(folder).parts, *PurePosixPath(target).parts):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def absolute_links(text: str, folder: str, repository: str, version: str) -> str:
    """Returns the README of the package in `folder` with absolute links.

    repository: its address; if "", links are replaced by their text and the path of the file.
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
    """Returns METADATA with the repository, further licence files, and a README with absolute links."""
    head, _, description = text.partition("\n\n")
    lines = head.splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith(("License-", "Version:")))
    lines[last + 1 : last + 1] = [f"License-File: {name}" for name in license_files]
    if repository:
        lines.append(f"Project-URL: Repository, {repository}")
        lines.append(f"Project-URL: Changelog, {repository}/blob/v{version}/CHANGELOG.md")
    return "\n".join(lines) + "\n\n" + absolute_links(description, folder, repository, version)


def problems(text: str, files: Iterable[str]) -> list[str]:
    """Returns problems in a wheel's METADATA. files: names in its .dist-info folder."""
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
    """Returns decisions that the owner of a release must make before uploading the wheel."""
    urls = Parser().parsestr(text).get_all("Project-URL", [])
    return [] if urls else [NO_REPOSITORY]


def requirements(metadata: Message) -> list[Mapping[str, str]]:
    """Returns name and text of each requirement that does not belong to an extra."""
    listed = metadata.get_all("Requires-Dist", [])
    plain = [text for text in listed if not re.search(r"\bextra\s*==", text)]
    return [{"name": re.split(r"[\s<>=!~;\[(]", text)[0], "text": text} for text in plain]
