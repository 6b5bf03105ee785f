# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Broken installations: the doctor names each, and the command that it prints repairs it.

Every state is created in an installation of its own. The doctor runs, its command runs in a shell, as
printed, and the doctor runs again. pip's own variables replace the package index by a folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
import torch

import musa_runtime
from tests.harness import mixtures
from tests.harness.installations import (
    FAMILY,
    SITE,
    Installation,
    fork_server,
    install,
    shared_links,
    wheel_path,
    write_family_wheel,
    write_wheel,
)
from tests.harness.parts import sample

pytestmark = pytest.mark.once

NOBODY = 65534
# The tools that remain in states whose PATH lacks a folder of programs.
TOOLS = ("c++", "env", "mktemp", "readlink")


@dataclass
class State:
    """A broken installation.

    Attributes:
        make: breaks the installation; returns variables to set, None to remove one.
        check, status, says: the doctor's check that reports it, its status, and words of its report.
        command: words of the command.
        without: distributions that are not installed.
        fresh: whether a new interpreter is needed, for states that do not affect a fork.
    """

    make: Callable[[Installation, Path], dict[str, str | None] | None]
    check: str
    says: str
    command: str
    status: str = "fail"
    without: tuple[str, ...] = ()
    fresh: bool = False


def variables(**values: str) -> Callable:
    return lambda installation, work: values


def only_tools(work: Path, *names: str) -> str:
    folder = work / "tools"
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
    return str(folder)


def remove(relative: str) -> Callable:
    def make(installation, work):
        (installation.site / relative).unlink()

    return make


def replace(relative: str, content: str) -> Callable:
    return lambda installation, work: installation.replace(relative, content)


def torch_upgraded_alone(installation, work):
    real, copy = SITE / "torch", installation.site / "torch"
    copy.mkdir()
    for entry in real.iterdir():
        if entry.name not in ("version.py", "__pycache__"):
            (copy / entry.name).symlink_to(entry)
    version = (real / "version.py").read_text()
    assert torch.__version__ in version
    (copy / "version.py").write_text(version.replace(torch.__version__, "2.99.0"))
    info = installation.site / "torch-2.99.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.99.0\n")
    (info / "RECORD").write_text(
        "torch/version.py,,\ntorch-2.99.0.dist-info/METADATA,,\ntorch-2.99.0.dist-info/RECORD,,\n"
    )
    index = work / "index"
    index.mkdir()
    write_wheel(
        index, "torch", torch.__version__.partition("+")[0], {"torch/version.py": real / "version.py"}
    )
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}


def no_compiler(installation, work):
    return {"PATH": str(installation.python.parent)}


def no_ninja(installation, work):
    (installation.python.parent / "ninja").unlink()
    index = work / "index"
    index.mkdir()
    write_wheel(index, "ninja", "9", {"ninja-9.data/scripts/ninja": b"#!/bin/sh\necho 9\n"})
    path = os.pathsep.join([str(installation.python.parent), only_tools(work, *TOOLS)])
    return {"PATH": path, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}


def environment_not_on_path(installation, work):
    return {"PATH": only_tools(work, *TOOLS)}


def moved_sdk_without_python(installation, work):
    # Other processes may compile its modules meanwhile.
    without_cache = shutil.ignore_patterns("__pycache__")
    home = shutil.copytree(
        installation.site / "musa_emulator" / "sdk", work / "a moved sdk", ignore=without_cache
    )
    launcher = home / "bin" / "mcc"
    text = launcher.read_text()
    assert " /usr/bin/python3 /usr/local/bin/python3" in text
    launcher.write_text(text.replace(" /usr/bin/python3 /usr/local/bin/python3", ""))
    launcher.chmod(0o755)
    return {"MUSA_HOME": str(home), "PATH": only_tools(work, *TOOLS, "ninja")}


def uninstalled_emulator(installation, work):
    left = installation.site / "musa_emulator" / "sdk" / "lib" / "mcc" / "__pycache__"
    left.mkdir(parents=True)
    (left / "driver.cpython-311.pyc").write_bytes(b"")


def home_without_libraries(installation, work):
    (work / "sdk" / "include").mkdir(parents=True)
    return {"MUSA_HOME": str(work / "sdk")}


def package_built_for_cuda(installation, work):
    """A package like torchaudio's default wheel: its library needs a CUDA build of torch."""
    files = {
        "sounds/__init__.py": "raise OSError('libc10_cuda.so: cannot open shared object file')\n",
        "sounds/_sounds.so": "\0libc10.so\0libc10_cuda.so\0",
        "sounds-2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sounds\nVersion: 2.0\n"
        "Requires-Dist: torch>=2\n",
        "sounds-2.0.dist-info/INSTALLER": "pip\n",
    }
    files["sounds-2.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    for name, text in files.items():
        path = installation.site / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def two_runtimes(installation, work):
    (work / "other").mkdir()
    install(work / "other", "musa-runtime", None)
    return {"PYTHONPATH": str(work / "other")}


def shadowed_by_sources(installation, work):
    shutil.copytree(
        Path(__file__).parents[2] / "packages/musa-runtime/src/musa_runtime", work / "src/musa_runtime"
    )
    # A checkout of other files than the installed ones.
    with (work / "src/musa_runtime/__init__.py").open("a") as file:
        file.write("\nABI = 99\n")
    return {"PYTHONPATH": str(work / "src")}


PACK = b"""
from musa_runtime.hookspecs import hookimpl
@hookimpl
def musa_pack_info(): return {"summary": "works"}
"""


def pack_that_raises(installation, work):
    points = "[torch_musa.plugins]\nfragile = fragile_pack\n[torch_musa.contract]\nfragile = v1\n"
    index = work / "packs of others"
    index.mkdir()
    wheel = write_wheel(index, "fragile-pack", "1", {"fragile_pack.py": PACK}, points)
    installation.shell(
        f"'{installation.python}' -m pip install --no-index --no-deps '{wheel}'", installation.environment
    )
    installation.replace("fragile_pack.py", "raise ValueError('a damaged file')\n")


def wrong_pin(installation, work):
    relative = f"musa_amp-{metadata.version('musa-amp')}.dist-info/METADATA"
    text = (installation.site / relative).read_text()
    installation.replace(relative, text.replace("musa-runtime==0.1.*", "musa-runtime==7.0.*"))


STATES = {
    "a pack's library is missing": State(
        remove("musa_ops_mudnn/lib/libmusa_ops_mudnn.so"), "packs", "libmusa_ops_mudnn.so", "musa-ops-mudnn"
    ),
    "torch is of another minor": State(
        torch_upgraded_alone,
        "torch",
        "torch 2.99.0",
        f"install 'torch=={musa_runtime.TORCH_MINOR}.*'",
        fresh=True,
    ),
    "no compiler on PATH": State(no_compiler, "compiler", "c++: not found", "export PATH", status="warn"),
    "a compiler that does not exist": State(
        variables(CXX="g++-99"), "compiler", "g++-99: not found", "unset CXX", status="warn"
    ),
    "ninja is not installed": State(no_ninja, "ninja", "not found", "pip install ninja", status="warn"),
    "the environment is not on PATH": State(
        environment_not_on_path, "ninja", "not found", "export PATH", status="warn"
    ),
    "mcc is missing": State(
        remove("musa_emulator/sdk/bin/mcc"), "mcc", "no such file", "musa-emulator", status="warn"
    ),
    "a moved SDK, and no python3": State(
        moved_sdk_without_python, "mcc", "no Python interpreter", "export PATH", status="warn"
    ),
    "the emulator is half uninstalled": State(
        uninstalled_emulator,
        "MUSA SDK",
        "not installed (",
        "musa-emulator musa-emulator-mudnn musa-emulator-mccl",
        without=tuple(name for name in FAMILY if name.startswith("musa-emulator")),
    ),
    "the home folder cannot be written": State(
        variables(HOME="/proc"), "build folder", "/proc", "export TORCH_EXTENSIONS_DIR", status="warn"
    ),
    "TORCH_EXTENSIONS_DIR cannot be written": State(
        variables(TORCH_EXTENSIONS_DIR="/proc/x"),
        "build folder",
        "/proc/x",
        "TORCH_EXTENSIONS_DIR",
        status="warn",
    ),
    "a locale without UTF-8": State(
        variables(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        "text encoding",
        "encoded as",
        "export PYTHONUTF8=1",
        status="warn",
        fresh=True,
    ),
    "MUSA_HOME is not decodable": State(
        variables(MUSA_HOME=os.fsdecode(b"/\xff")), "MUSA SDK", "no such directory", "unset MUSA_HOME"
    ),
    "MUSA_HOME does not exist": State(
        variables(MUSA_HOME="/nonexistent/musa"), "MUSA SDK", "no such directory", "unset MUSA_HOME"
    ),
    "MUSA_HOME has no libraries": State(
        home_without_libraries, "MUSA SDK", "has no lib/libmusart.so", "unset MUSA_HOME"
    ),
    "the SDK's library is damaged": State(
        replace("musa_emulator/sdk/lib/libmusart.so", "no library"),
        "libraries",
        "libmusart.so",
        "musa-emulator",
    ),
    "the emulator's muDNN is not installed": State(
        lambda installation, work: None,
        "packs",
        "has no lib/libmudnn.so",
        "musa-emulator-mudnn",
        without=("musa-emulator-mudnn",),
    ),
    "the emulator's MCCL is not installed": State(
        lambda installation, work: None,
        "distributed: MCCL",
        "has no lib/libmccl.so",
        "musa-emulator-mccl",
        without=("musa-emulator-mccl",),
    ),
    "a package built for CUDA": State(
        package_built_for_cuda,
        "packages built for CUDA",
        "needs libc10_cuda.so",
        "uninstall --yes sounds",
        status="warn",
        fresh=True,
    ),
    "two runtimes": State(
        two_runtimes, "versions", "musa-runtime 0.1.0+torch", "unset PYTHONPATH", status="warn"
    ),
    "PYTHONPATH hides the installed runtime": State(
        shadowed_by_sources, "import path", "PYTHONPATH", "unset PYTHONPATH"
    ),
    "a pack is disabled": State(
        variables(TORCH_MUSA_DISABLE_PACKS="mudnn"),
        "packs",
        "mudnn 0.1.0+torch",
        "unset TORCH_MUSA_DISABLE_PACKS",
        status="warn",
    ),
    "a pack raises": State(pack_that_raises, "packs", "a damaged file", "fragile-pack"),
    "every device is hidden": State(
        variables(MUSA_VISIBLE_DEVICES=""), "devices", "0 devices", "unset MUSA_VISIBLE_DEVICES"
    ),
    "the autoload of backends is off": State(
        variables(TORCH_DEVICE_BACKEND_AUTOLOAD="0"),
        "activation",
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
        "unset TORCH_DEVICE_BACKEND_AUTOLOAD",
        status="warn",
    ),
    "Python files of another build": State(
        replace(
            "musa_runtime/_build.py",
            f"__version__={metadata.version('torch-musa')!r}\nOLDEST_TORCH=NEWEST_TORCH='2.13'\nABI=99\n",
        ),
        "libraries",
        "need: ABI 99",
        "musa-runtime",
    ),
    "a runtime of another release": State(
        replace("musa_runtime/_build.py", "__version__='0'\nOLDEST_TORCH=NEWEST_TORCH='2.13'\nABI=99\n"),
        "activation",
        "different releases",
        "torch-musa musa-runtime",
    ),
    "the runtime's library is missing": State(
        remove("musa_runtime/lib/libmusa_runtime.so"), "libraries", "libmusa_runtime.so", "musa-runtime"
    ),
    "torch.musa cannot be imported": State(
        replace("torch_musa/musa/__init__.py", "raise ImportError('half of a file')\n"),
        "activation",
        "half of a file",
        "torch-musa musa-runtime",
    ),
    "an unknown provider": State(
        variables(TORCH_MUSA_OPS="aten::mm=portd"), "provider order", "portd", "unset TORCH_MUSA_OPS"
    ),
    "an unknown setting of the allocator": State(
        variables(PYTORCH_MUSA_ALLOC_CONF="foo:1"),
        "allocator settings",
        "foo",
        "unset PYTORCH_MUSA_ALLOC_CONF",
    ),
    "versions that do not fit": State(wrong_pin, "versions", "musa-runtime 0.1.0", "musa-amp musa-runtime"),
}


@pytest.fixture(scope="module")
def place():
    """A folder that other users may enter, with the links, the wheels and the installations."""
    folder = Path(tempfile.mkdtemp(prefix="doctor-"))
    folder.chmod(0o755)
    wheels = folder / "a folder of wheels"
    wheels.mkdir()
    for name in FAMILY:
        if name not in ("musa-ops-ported", "musa-distributed"):  # large, and no state reinstalls them
            write_family_wheel(wheels, name)
    shared_links(folder / "shared")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server(place):
    with fork_server(place / "shared") as server:
        yield server


@pytest.fixture
def make(place):
    number = len(list(place.iterdir()))

    def make(without=()):
        folder = place / str(number)
        folder.mkdir()
        return Installation(folder, place / "shared", place / "a folder of wheels", without)

    return make


def outcomes(done) -> dict[str, dict]:
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    return {outcome["title"]: outcome for outcome in json.loads(done.stdout)}


def failures(found) -> list[str]:
    return [f"{title}: {row}" for title, row in found.items() if row["status"] in ("fail", "skip")]


def changed(environment: dict[str, str], changes: dict[str, str | None] | None) -> dict[str, str]:
    merged = {**environment, **(changes or {})}
    return {name: value for name, value in merged.items() if value is not None}


# The first two are the most frequent states.
@pytest.mark.parametrize("name", sample(STATES, 3, list(STATES)[:2]))
def test_the_doctor_names_the_state_and_its_command_repairs_it(name, make, server, request):
    state = STATES[name]
    installation = make(state.without)
    work = installation.prefix.parent
    environment = changed(installation.environment, state.make(installation, work))
    doctor = installation.doctor_here if state.fresh else lambda e: installation.doctor_in_fork(server, e)

    done = doctor(environment)
    found = outcomes(done)
    told = found[state.check]
    assert told["status"] == state.status, (told, done.stderr)
    assert state.says in told["detail"] and told["causes"], told
    mixtures.check(request, told["detail"])
    assert state.command in told["command"], told
    assert done.returncode == (1 if state.status == "fail" else 0)
    if state.status == "fail":
        assert told == next(row for row in found.values() if row["status"] == "fail"), failures(found)

    after = outcomes(doctor(installation.shell(told["command"], environment)))
    assert after[state.check]["status"] == "ok", after[state.check]
    assert failures(after) == []


def test_there_are_enough_states_and_each_has_a_fault():
    assert len(STATES) >= 20
    assert all(state.check and state.says and state.command for state in STATES.values())


def test_an_installation_without_fault_passes_every_check(make, server):
    installation = make()
    done = installation.doctor_in_fork(server, installation.environment)
    found = outcomes(done)
    assert done.returncode == 0 and {row["status"] for row in found.values()} == {"ok"}, found
    assert str(installation.site) in found["import path"]["detail"] and " " in str(installation.site)
    assert " " in found["mcc"]["detail"].partition(": ")[0]


def test_without_a_device_the_checks_of_packs_depend_on_the_device(make, server):
    """The devices are the only failure, and no check recommends a report."""
    installation = make()
    environment = {**installation.environment, "MUSA_EMULATOR_DEVICES": "0"}
    done = installation.doctor_in_fork(server, environment)
    found = outcomes(done)
    assert done.returncode == 1
    assert [title for title, row in found.items() if row["status"] == "fail"] == ["devices"], found
    skipped = {title for title, row in found.items() if row["detail"] == "depends on: devices"}
    assert skipped >= {"allocation", "distributed: MCCL", "serving: operators", "vision: operators"}
    assert "report" not in done.stdout


def test_a_user_without_rights_gets_a_folder_to_build_in(make, server):
    """Runs as another user: the home folder is not writable, every check runs, and the printed command
    helps."""
    installation = make()
    environment = changed(installation.environment, {"HOME": str(installation.prefix)})
    installation.prefix.chmod(0o555)
    examine = """
import json, sys, torch_musa.doctor as doctor
doctor.examine()  # imports everything: the interpreter's own files may be another user's
if os.getuid() == 0:
    os.setgroups([]); os.setgid({user}); os.setuid({user})
assert os.getuid() != 0
os.environ.update({changes})
print(json.dumps([outcome.as_dict() for outcome in doctor.examine()]))
"""
    code = installation.code(environment, examine.format(user=NOBODY, changes={}))
    found = outcomes(server.run(code, environment))
    assert found["build folder"]["status"] == "warn" and failures(found) == [], found
    assert found["build folder"]["command"].startswith("export TORCH_EXTENSIONS_DIR=")
    mended = installation.shell(found["build folder"]["command"], environment)
    folder = mended["TORCH_EXTENSIONS_DIR"]
    os.chown(folder, NOBODY if os.getuid() == 0 else -1, -1)  # mktemp ran as the user of the tests
    code = installation.code(
        environment, examine.format(user=NOBODY, changes={"TORCH_EXTENSIONS_DIR": folder})
    )
    assert outcomes(server.run(code, environment))["build folder"]["status"] == "ok"


def test_a_state_that_its_command_does_not_repair_is_noticed(make, server):
    installation = make()
    environment = {**installation.environment, "MUSA_HOME": "/nonexistent/musa"}
    told = outcomes(installation.doctor_in_fork(server, environment))["MUSA SDK"]
    wrong = installation.shell(told["command"].replace("unset", ": unset"), environment)
    assert outcomes(installation.doctor_in_fork(server, wrong))["MUSA SDK"]["status"] == "fail"


def test_torch_upgraded_alone_warns_once_and_the_device_says_the_same(make, request):
    installation = make()
    environment = changed(
        installation.environment, torch_upgraded_alone(installation, installation.prefix.parent)
    )
    code = f"""MINOR = {musa_runtime.TORCH_MINOR!r}
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import torch
import torch_musa, torch.musa
(warning,) = [str(w.message) for w in told if "musa" in str(w.message)]
assert "have: torch 2.99.0" in warning and f"need: torch {{MINOR}}.*" in warning, warning
assert "\\nFix: " in warning, warning
linear = torch.nn.Linear(2, 2)
uses = [
    lambda: torch.ones(1, device="musa"),
    lambda: torch.ones(1).to("musa"),
    lambda: torch.ones(1).musa(),
    lambda: linear.to("musa"),
    lambda: torch.musa.synchronize(),
    lambda: torch.musa.init(),
]
for number, use in enumerate(uses):
    try:
        use()
    except RuntimeError as error:
        assert "have: torch 2.99.0" in str(error) and "\\nFix: " in str(error), (number, error)
    else:
        raise AssertionError(number)
assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0
assert not torch.musa.is_available() and torch.musa.device_count() == 0
torch.manual_seed(1)
linear(torch.ones(2)).sum().backward()
batches = torch.utils.data.DataLoader(torch.arange(4.0), pin_memory=True)
assert sum(batch.item() for batch in batches) == 6
try:
    torch.empty(2, pin_memory=True)
except RuntimeError:  # as in a torch without accelerator
    pass
else:
    raise AssertionError("pinned")
print(warning)
"""
    done = subprocess.run(
        [str(installation.python), "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    mixtures.check(request, done.stdout)


def test_a_missing_wheel_in_the_folder_is_not_promised(make, server, place):
    installation = make(("musa-emulator-mccl",))
    wheel = wheel_path(place / "a folder of wheels", "musa-emulator-mccl")
    hidden = wheel.rename(place / "elsewhere.whl")
    try:
        found = outcomes(installation.doctor_in_fork(server, installation.environment))
    finally:
        hidden.rename(wheel)
    command = found["distributed: MCCL"]["command"]
    assert command.endswith(
        "--no-index --find-links <the folder or index that torch-musa was installed from> musa-emulator-mccl"
    )


@pytest.mark.parametrize("left", [False, True], ids=["never installed", "half uninstalled"])
def test_torch_backends_mudnn_can_be_set_without_its_wheel(left, make, server):
    installation = make(("musa-ops-mudnn",))
    if left:
        (installation.site / "musa_ops_mudnn" / "__pycache__").mkdir(parents=True)
    program = """
import torch
import torch.backends.mudnn as by_name
from torch_musa.backends import AbsentBackend
assert by_name is torch.backends.mudnn and isinstance(by_name, AbsentBackend)
mudnn = torch.backends.mudnn
assert mudnn.enabled is True and torch.backends.cudnn.enabled is True  # cuDNN is not there either
mudnn.enabled = False
mudnn.benchmark = True
with mudnn.flags(enabled=True, deterministic=True):
    assert (mudnn.enabled, mudnn.deterministic, mudnn.allow_tf32) == (True, True, False)
assert (mudnn.enabled, mudnn.deterministic, mudnn.benchmark) == (False, False, True)
assert not mudnn.is_available() and mudnn.version() is None
print(torch.ones(2, device="musa").sum().item())
"""
    done = server.run(installation.code(installation.environment, program), installation.environment)
    assert done.stdout == "2.0\n", done.stderr


def test_the_substitute_for_torch_backends_mudnn_has_its_names_and_is_replaced_by_it():
    from musa_ops_mudnn import backend

    from torch_musa import backends, import_hooks

    for name in ("version", "is_available", "set_flags", "flags", *backend._NAMES):
        assert hasattr(backends.AbsentBackend("torch.backends.mudnn"), name), name
    before = torch.backends.mudnn
    import_hooks.add_placeholders()
    assert torch.backends.mudnn is before and not isinstance(before, backends.AbsentBackend)
