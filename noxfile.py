# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Sessions of the workspace, `nox -l`. Tests use `.venv`, which `python3 tools/dev.py setup` makes."""

import sys
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))
from workspace import legs  # noqa: E402
from workspace.versions import served_torch  # noqa: E402

nox.options.sessions = ["lint", "tier"]
nox.options.default_venv_backend = "none"


def dev(session: nox.Session, *arguments: str) -> None:
    session.run("python3", "tools/dev.py", *arguments, external=True)


def module(session: nox.Session, name: str) -> None:
    session.run(str(ROOT / ".venv/bin/python"), "-m", name, *session.posargs, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, rules and types."""
    dev(session, "lint", "--types", *session.posargs)


@nox.session
def tier(session: nox.Session) -> None:
    """Test what changed, and a sample of the rest: at most ten minutes on two cores."""
    dev(session, "test", *session.posargs)


@nox.session(name="legs")
@nox.parametrize("leg", [leg.name for leg in legs.every_leg()], ids=[leg.name for leg in legs.every_leg()])
def run_leg(session: nox.Session, leg: str) -> None:
    """Run one leg: all tests of one setting of the device."""
    dev(session, "test", "--leg", leg, *session.posargs)


@nox.session
def full(session: nox.Session) -> None:
    """Run all legs with complete sweeps: hours."""
    dev(session, "test", "--all", *session.posargs)


@nox.session
@nox.parametrize("torch", served_torch().minors(), ids=served_torch().minors())
def matrix(session: nox.Session, torch: str) -> None:
    """Build and test with another minor of torch, in build/matrix."""
    dev(session, "matrix", "--torch", torch, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the manual, run the code of its pages, and check it in a browser."""
    dev(session, "docs", *session.posargs)


@nox.session
def ecosystem(session: nox.Session) -> None:
    """Run real packages on the musa device, in build/ecosystem."""
    dev(session, "ecosystem", *session.posargs)


@nox.session
def mutations(session: nox.Session) -> None:
    """Count the seeded faults that the tests find."""
    module(session, "tests.mutations")


@nox.session
def torchada(session: nox.Session) -> None:
    """Run torchada's own tests on the emulator, in four settings; needs the package index."""
    module(session, "tests.musa_compat.torchada_suite")


@nox.session
def vllm(session: nox.Session) -> None:
    """Serve whole models with vLLM on the emulator; needs the package index and 6 GB of disk."""
    module(session, "tests.vllm_torch_musa.environment")
