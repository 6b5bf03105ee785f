# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Any module of any package may be imported first, before torch or after it, with an SDK or without one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil

import pytest

from tests.harness.forkserver import ForkServer
from tests.harness.subprocesses import run_python

pytestmark = pytest.mark.once

PACKAGES = (
    "torch_musa",
    "musa_runtime",
    "musa_ops_mudnn",
    "musa_ops_ported",
    "musa_port",
    "musa_amp",
    "musa_as_cuda",
    "musa_distributed",
)
# SDKs: one of them is installed.
STAND_INS = ("musa_emulator", "musa_cuda")
# Modules that raise when they are imported in a given state, with the reason.
RAISES = {
    ("musa_runtime._C", "first"): "its libraries are found by name once musa_runtime has loaded them",
    ("musa_runtime._C", "no sdk"): "there is no libmusart.so to link with",
    ("musa_distributed._C", "first"): "its libraries are found by name once musa_distributed has loaded them",
    ("musa_distributed._C", "second"): "as above",
    ("musa_distributed._C", "no sdk"): "there is no libmusart.so to link with",
}
# Modules for packages that the tests do not need: each raises an error that names its package.
NEED_A_PACKAGE = {
    "torch_musa.integrations.deepspeed": ("deepspeed",),
    "torch_musa.integrations.lightning": ("lightning", "pytorch_lightning", "lightning_fabric"),
    "torch_musa.integrations.transformers": ("transformers",),
}
NO_SDK = {"MUSA_HOME": "/nonexistent/musa"}

CASE = """
import sys
{hide}
try:
    {first}
except {allowed} as error:
    print("raised", type(error).__name__)
{second}
import torch, torch_musa
assert torch.get_device_module("musa") is torch.musa and torch_musa._impl.failure is None
assert torch.ones(2).sum() == 2 and not torch.empty(2).is_pinned()
{module_is_whole}
try:
    print(torch.ones(2, device="musa").sum().item())
except RuntimeError as error:
    print(type(error).__name__)
assert hasattr(torch.backends, "mudnn") and hasattr(torch.distributed.Backend, "MCCL")
"""


def modules() -> list[str]:
    """Every module below the installed packages, found by walking them, so that a new one is covered."""
    found = []
    for name in filter(importlib.util.find_spec, (*PACKAGES, *STAND_INS)):
        spec = importlib.util.find_spec(name)
        found += [name, *(info.name for info in _walk(spec.submodule_search_locations, name + "."))]
    return sorted(set(found))


def _walk(path, prefix):
    for info in pkgutil.iter_modules(path, prefix):
        yield info
        if info.ispkg:
            folder = info.name.rpartition(".")[2]
            yield from _walk([os.path.join(parent, folder) for parent in path], info.name + ".")


CASES = [
    (module, order, sdk)
    for module in modules()
    for order in ("before torch", "after torch")
    for sdk in ("sdk", "no sdk")
]
# Each of these failed once, or represents its kind.
TELLING = {
    "musa_amp",
    "musa_distributed",
    "musa_distributed.registration",
    "musa_ops_mudnn.backend",
    "musa_ops_mudnn.plugin",
    "musa_runtime._C",
    "musa_runtime.device",
    "musa_runtime.graphs",
    "musa_runtime.processes",
    "torch_musa.import_hooks",
    "torch_musa.plugins",
}


def lacks_its_package(module: str) -> bool:
    wanted = [names for owner, names in NEED_A_PACKAGE.items() if f"{module}.".startswith(f"{owner}.")]
    return any(not any(map(importlib.util.find_spec, names)) for names in wanted)


def code_of(module: str, order: str, sdk: str) -> str:
    states = {"first" if order == "before torch" else "second", *(["no sdk"] if sdk == "no sdk" else [])}
    allowed = any((module, state) in RAISES for state in states) or lacks_its_package(module)
    whole = f"assert not getattr(sys.modules[{module!r}].__spec__, '_initializing', False)"
    return CASE.format(
        hide="hide_torch()",
        first=f"import {module}" if order == "before torch" else "import torch",
        second=""
        if order == "before torch"
        else f"""
try:
    import {module}
except {"ImportError" if allowed else "()"} as error:
    print("raised", type(error).__name__)
""",
        allowed="ImportError" if allowed and order == "before torch" else "()",
        module_is_whole="" if allowed else whole,
    )


@pytest.fixture(scope="module")
def server():
    server = ForkServer()
    yield server
    server.close()


def environment(sdk: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    return {**kept, **(NO_SDK if sdk == "no sdk" else {})}


def outcome(server: ForkServer, case: tuple[str, str, str]) -> str | None:
    """The failure of a case, or None."""
    module, order, sdk = case
    done = server.run(code_of(*case), environment(sdk))
    ending = "2.0" if sdk == "sdk" else "SdkNotFoundError"
    if done.returncode == 0 and done.stdout.splitlines()[-1:] == [ending] and "Warning" not in done.stderr:
        return None
    return f"{module} {order}, {sdk}: status {done.returncode}\n{done.stdout}{done.stderr}"


def test_every_module_may_come_first_in_every_state(server, full):
    telling = [case for case in CASES if case[0] in TELLING and case[1] == "before torch"]
    cases = CASES if full else [*telling, *CASES[::19]]
    wrong = [text for case in cases if (text := outcome(server, case))]
    print(f"{len(cases)} of {len(CASES)} cases, {len(modules())} modules")
    assert not wrong, "\n".join(wrong)


def test_the_walk_finds_packages_modules_and_extensions():
    found = set(modules())
    assert {*PACKAGES, *TELLING, "musa_port.rules", "torch_musa.musa.comm"} <= found
    assert not found.isdisjoint(STAND_INS)
    assert len(found) > 70


@pytest.mark.parametrize("module", ["musa_distributed", "musa_ops_mudnn.backend", "musa_runtime.device"])
def test_the_same_holds_in_an_interpreter_of_its_own(module):
    # The forks share the body of `import torch`; this interpreter runs it.
    done = run_python("-c", code_of(module, "before torch", "sdk").replace("hide_torch()", ""))
    assert done.returncode == 0 and done.stdout == "2.0\n", done.stderr


def test_an_entry_point_that_imports_torch_first_is_caught(server, tmp_path):
    """A backend that is not yet defined when its own import of torch loads backends breaks `import torch`."""
    (tmp_path / "backend_of_old.py").write_text("import torch\ndef _autoload(): pass\n")
    info = tmp_path / "backend_of_old-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: backend-of-old\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nold = backend_of_old:_autoload\n")
    code = code_of("backend_of_old", "before torch", "sdk")
    done = server.run(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + code, environment("sdk"))
    assert done.returncode == 1 and "Failed to load the backend extension: old" in done.stderr
