# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""mthreads-gmi: its output as public scripts read it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.musa_emulator import sdk
from tests.musa_emulator.device_processes import machine, on_device, running

pytestmark = pytest.mark.once

PROGRAM = sdk.HOME / "bin" / "mthreads-gmi"


@pytest.fixture(scope="module")
def busy() -> Iterator[tuple[dict[str, str], int]]:
    """A machine with three devices, and a process that holds 40 MiB on the second."""
    environment = machine(PATH=f"{sdk.HOME / 'bin'}:/usr/bin:/bin")
    environment["PATH"] += f":{Path(shutil.which('python3') or '').parent}"
    with running(on_device(1, 40), environment) as process:
        yield environment, process.pid


def gmi(busy: tuple[dict[str, str], int], *arguments: str, status: int = 0) -> str:
    done = subprocess.run([PROGRAM, *arguments], env=busy[0], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def shell(busy: tuple[dict[str, str], int], command: str) -> str:
    done = subprocess.run(["bash", "-c", command], env=busy[0], capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "command, expected",
    [
        ('mthreads-gmi -L 2>/dev/null | grep -c "GPU "', "3"),
        ("mthreads-gmi -L | grep -c '^GPU '", "3"),
        (
            "mthreads-gmi -L | sed -n 's/^GPU [0-9][0-9]* : *\\(.*\\) *(UUID.*/\\1/p' | sort -u",
            "MTT S5000 (emulated)",
        ),
        (
            "mthreads-gmi -q -i 0 | grep \"Product Name\" | awk -F: '{print $2}' | tr -d '[:space:]'",
            "MTTS5000(emulated)",
        ),
        (
            'mthreads-gmi -q -d MEMORY -i 1 | grep -A 3 "FB Memory Usage" | grep "Used" | grep -oP "\\d+"',
            "40",
        ),
        (
            'mthreads-gmi -q -d MEMORY -i 1 | grep -A 3 "FB Memory Usage" | grep "Total" | grep -oP "\\d+"',
            "256",
        ),
        ("mthreads-gmi -q | grep MTBios | awk -F ': ' '{print $2}' | tr -d ' ' | sort -u", "N/A"),
        ("mthreads-gmi -v | awk -F: '{print $2}' | tr -d ' '", "0.1.0"),
        ("mthreads-gmi -q -d=POWER | grep -c 'Power Draw'", "3"),
        ("mthreads-gmi | grep -oE 'MTT +S[0-9]+' | wc -l", "3"),
        ("mthreads-gmi -cf | sed -n 's/.*Driver Version: *\\([^ ]*\\).*/\\1/p'", "4.3.1"),
        ("mthreads-gmi | grep -oE '[0-9]+MiB\\([0-9]+MiB\\)' | sed -n 2p", "40MiB(256MiB)"),
    ],
)
def test_a_command_of_a_public_script(busy: tuple[dict[str, str], int], command: str, expected: str) -> None:
    assert shell(busy, command) == expected


def test_processes_are_rows_of_device_process_name_and_memory(busy: tuple[dict[str, str], int]) -> None:
    command = "mthreads-gmi -pm | awk '$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ { print $1, $2, $NF }'"
    assert shell(busy, command) == f"1 {busy[1]} 40MiB"
    assert f"\n1    {busy[1]} " in gmi(busy)


def test_the_overview_has_the_columns_of_the_vendors(busy: tuple[dict[str, str], int]) -> None:
    lines = gmi(busy).splitlines()
    assert re.fullmatch(r"    mthreads-gmi:\S+ +Driver Version:\S+", lines[2])
    assert lines[4] == "ID   Name                 |PCIe                |%GPU  Mem"
    assert re.fullmatch(r"0    MTT S5000 \(emulated\) \|00000000:01:00.0    \|\d+% +0MiB\(256MiB\)", lines[8])
    assert re.match(r"^\d+\s+(\S+\s+\S+)\s+", lines[8])
    assert gmi((machine(), 0)).count("no running processes found") == 1


def test_each_device_is_a_block_of_the_query(busy: tuple[dict[str, str], int]) -> None:
    text = gmi(busy, "-q")
    assert re.search(r"^Attached GPUs\s*:\s*3$", text, re.MULTILINE)
    for device in range(3):
        block = re.search(rf"^GPU{device}\b(?P<body>.*?)(?=^GPU\d+\b|\Z)", text, re.MULTILINE | re.DOTALL)
        assert block is not None
        identity = re.search(r"GPU UUID\s*:\s*(\S+)", block["body"])
        assert identity is not None and len(identity[1]) == 36
        assert "    Product Name                                  :  MTT S5000 (emulated)\n" in block["body"]


def test_json_has_the_content_of_the_query(busy: tuple[dict[str, str], int]) -> None:
    content = json.loads(gmi(busy, "--query", "--json"))
    assert content["Driver Version"] == "4.3.1" and content["Attached GPUs"] == "3"
    second = content["GPU"][1]
    assert second["Index"] == "1" and second["PCI"]["Bus ID"] == "00000000:02:00.0"
    assert second["FB Memory Usage"] == {"Total": "256MiB", "Used": "40MiB", "Free": "216MiB"}
    assert second["Power Readings"]["Power Draw"] == second["Temperature"]["GPU Current Temp"] == "N/A"
    (only,) = json.loads(gmi(busy, "-q", "-j", "-i", "2", "-d", "memory"))["GPU"]
    assert set(only) == {"Index", "FB Memory Spec", "FB Memory Usage"} and only["Index"] == "2"


def test_columns_are_those_of_query_gpu(busy: tuple[dict[str, str], int]) -> None:
    rows = gmi(busy, "--query-gpu=index,uuid,name", "--format=csv,noheader").splitlines()
    assert [row.split(", ")[0::2] for row in rows] == [[str(i), "MTT S5000 (emulated)"] for i in range(3)]
    text = gmi(busy, "--query-gpu=memory.used,power.draw", "--format=csv", "-i", "1")
    assert text == "memory.used [MiB], power.draw [W]\n40 MiB, N/A\n"
    assert gmi(busy, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "1") == "40\n"


def test_the_loop_prints_again_until_it_is_interrupted(busy: tuple[dict[str, str], int]) -> None:
    with subprocess.Popen(
        [PROGRAM, "-q", "-i", "0", "-d", "MEMORY", "-l", "0.01"],
        env=busy[0],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        found = 0
        while found < 3:
            found += process.stdout.readline().startswith("GPU0")
        process.send_signal(2)
        process.stdout.close()
    assert process.returncode in (0, -13)


@pytest.mark.parametrize(
    "arguments, status, text",
    [
        (("-i", "3"), 1, "no such device; there are 3\nFix: mthreads-gmi -L"),
        (("-i", "x"), 1, "no such device"),
        (("--query-gpu=index,foo",), 1, "unknown field: foo"),
        (("--query-gpu=index", "--format=xml"), 1, "Fix: --format=csv"),
        (("-q", "-d", "FOO"), 2, "FOO is none of MEMORY"),
        (("--json",), 2, "need -q"),
        (("topo", "-m"), 2, "usage: mthreads-gmi"),
        (("-l", "0"), 2, "not a positive number"),
    ],
)
def test_a_mistake_is_named(
    busy: tuple[dict[str, str], int], arguments: tuple[str, ...], status: int, text: str
) -> None:
    assert text in gmi(busy, *arguments, status=status)


# A libmtml with few functions, as an old version's.
OLD = """
#include <string.h>
static int text(char *to, unsigned size, const char *from) { strncpy(to, from, size); return 0; }
const char *mtmlErrorString(int code) { return code == 1 ? "Driver Not Loaded" : "?"; }
int mtmlLibraryInit(void **library) { *library = (void *)8; return STATUS; }
int mtmlLibraryInitSystem(void *library, void **system) { *system = library; return 0; }
int mtmlSystemGetDriverVersion(void *s, char *to, unsigned size) { return s ? text(to, size, "1.2.3") : 3; }
int mtmlLibraryCountDevice(void *library, unsigned *count) { *count = library != 0; return 0; }
int mtmlLibraryInitDeviceByIndex(void *l, unsigned i, void **device) { *device = l; return i ? 7 : 0; }
int mtmlDeviceGetName(void *device, char *to, unsigned n) { return device ? text(to, n, "MTT S80") : 3; }
int mtmlDeviceInitGpu(void *device, void **gpu) { *gpu = device; return 0; }
int mtmlGpuGetTemperature(void *gpu, unsigned *celsius) { *celsius = 41; return gpu ? 0 : 3; }
int mtmlDeviceGetPowerUsage(void *device, unsigned *power) { *power = 96660; return device ? 0 : 3; }
"""


def with_other_library(folder: Path, status: int) -> tuple[dict[str, str], Path]:
    (folder / "old.c").write_text(OLD)
    subprocess.run(
        ["cc", "-shared", "-fPIC", f"-DSTATUS={status}", "-o", folder / "libmtml.so", folder / "old.c"],
        check=True,
    )
    program = shutil.copy(PROGRAM, folder / "mthreads-gmi")
    return sdk.clean_environment(LD_LIBRARY_PATH=str(folder)), Path(program)


def test_it_reads_a_libmtml_with_fewer_functions(tmp_path: Path) -> None:
    environment, program = with_other_library(tmp_path, 0)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)

    text = run().stdout
    assert re.search(r"^0    MTT S80 +\|N/A +\|N/A   N/A\(N/A\)$", text, re.MULTILINE)
    assert "|41C" in text and "not reported" in text
    assert "Power Draw                                :  96.66W\n" in run("-q").stdout
    assert run("-pm").returncode == 1


def test_a_library_that_does_not_open_is_explained(tmp_path: Path) -> None:
    environment, program = with_other_library(tmp_path, 1)
    done = subprocess.run([program, "-L"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "mtmlLibraryInit: Driver Not Loaded" in done.stderr
    (tmp_path / "libmtml.so").unlink()
    done = subprocess.run([program, "-L"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "Fix: export LD_LIBRARY_PATH" in done.stderr
