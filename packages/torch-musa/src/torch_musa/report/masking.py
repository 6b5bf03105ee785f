# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Removes secrets and personal names from a text that is sent to others."""

from __future__ import annotations

import collections
import contextlib
import getpass
import os
import platform
import re
import socket
from urllib.parse import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|API_?KEY|ACCESS_?KEY|(?:_|^)(?:KEY|PAT|AUTH)(?:_|$)",
    re.IGNORECASE,
)
_SHORTEST_SECRET = 4  # a shorter value occurs in other text as well
# Kinds of secrets that are recognized by their form. Group 1, if there is one, is kept.
_FORMS = (
    re.compile(r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(://)[^/\s'\"<>]+(?=@)"),  # user:password@ of a URL
    re.compile(
        r"((?i:token|secret|passw(?:or)?d|passphrase|credential|signature|api[_-]?key|access[_-]?key)"
        r"[\w-]*[\"']?\s*[=:]\s*)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'&,;<]+)"
    ),
    re.compile(r"((?i:authorization[\"']?\s*[=:]\s*)(?:[A-Za-z]+\s+)?)[^\s\"',;<]+"),
    re.compile(r"((?i:\bbearer\s+))[\w.~+/=-]{8,}"),
    re.compile(
        r"()\b(?:gh[a-z]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_\w{16,}|sk-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
        r"|pypi-[\w-]{16,}|AKIA[0-9A-Z]{12,}|eyJ[\w-]+\.[\w-]+\.[\w-]+)"
    ),
)
# Folders that hold the home folders of all users.
_HOMES = re.compile(r"(/(?:home|Users)/)[^/\s'\":,;<>]+")
# Names of accounts and hosts that tell nothing about a person, and that occur in most reports as words.
_COMMON = {"root", "musa", "torch", "python", "localhost", ""}


class Mask:
    """Replaces secrets, home folders, user names and host names by placeholders.

    Args:
        environment (mapping of str to str): variables whose values are secrets if their names say so. Their
            values are replaced wherever they occur.
        homes, users, hosts (iterables of str): folders and names to replace.

    Attributes:
        counts (Counter): number of replacements of each kind.
    """

    def __init__(
        self, environment: Mapping[str, str], homes: Iterable[str], users: Iterable[str], hosts: Iterable[str]
    ) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        secrets = [
            value
            for name, value in environment.items()
            if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET
        ]
        self._secrets = _any_of(part for value in secrets for part in (value, *value.splitlines()))
        self._homes = _any_of((home.rstrip("/") for home in homes), end=r"(?![\w.-])")
        word = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
        self._users = _any_of((name for name in users if name.lower() not in _COMMON), *word)
        hosts = {part for host in hosts for part in (host, host.partition(".")[0])}
        self._hosts = _any_of((name for name in hosts if name.lower() not in _COMMON), *word)

    @classmethod
    def of_this_process(cls) -> Mask:
        """Returns a mask for the user, the host and the environment of this process."""
        variables = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
        users = {os.environ.get(name, "") for name in variables}
        homes = {os.path.expanduser("~"), os.environ.get("HOME", "")}
        try:
            import pwd

            entry = pwd.getpwuid(os.getuid())
            users.add(entry.pw_name)
            homes.add(entry.pw_dir)
        except (ImportError, KeyError):  # a container with a number as its user
            pass
        with contextlib.suppress(KeyError, OSError):
            users.add(getpass.getuser())
        homes = {home for path in homes if path.strip("/") for home in (path, os.path.realpath(path))}
        users |= {os.path.basename(home.rstrip("/")) for home in homes}
        hosts = {socket.gethostname(), platform.node(), os.environ.get("HOSTNAME", "")}
        return cls(os.environ, homes, users, hosts)

    def __call__(self, text: str) -> str:
        """Returns the text with the placeholders."""
        text = self._replace(self._secrets, "<secret>", text, "secrets")
        for form in _FORMS:
            text = self._replace(form, r"\1<secret>", text, "secrets")
        text = self._replace(self._homes, "~", text, "home folders")
        text = self._replace(_HOMES, r"\1<user>", text, "home folders")
        text = self._replace(self._users, "<user>", text, "user names")
        return self._replace(self._hosts, "<host>", text, "host names")

    def _replace(self, pattern: re.Pattern[str] | None, by: str, text: str, kind: str) -> str:
        if pattern is None:
            return text
        text, count = pattern.subn(by, text)
        self.counts[kind] += count
        return text


def _any_of(values: Iterable[str], begin: str = "", end: str = "") -> re.Pattern[str] | None:
    """Returns a pattern of any of the values, also as parts of URLs; None without values."""
    forms = {
        form for value in values if value.strip() for form in (value, quote(value), quote(value, safe=""))
    }
    # The longest first: a value may be the beginning of another.
    texts = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(f"{begin}(?:{texts}){end}", re.IGNORECASE) if forms else None
