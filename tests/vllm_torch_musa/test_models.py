# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Whole models and servers, in the environment with vLLM that `nox -s vllm` makes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.harness.skips import skip_permanently
from tests.vllm_torch_musa import environment

pytestmark = [
    pytest.mark.once,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(1200),
]

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(autouse=True)
def vllm() -> None:
    if not environment.python().exists():
        skip_permanently("vllm", str(environment.python()))


def run(program: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    # The environment of the tests is not that of vLLM's users.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MUSA_EMULATOR", "TORCH_MUSA"))
    }
    done = subprocess.run(
        [str(environment.python()), str(program), *arguments],
        env={**kept, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=1100,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-40000:]}"
    return done


def result(done: subprocess.CompletedProcess[str]) -> dict:
    return json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))


IN_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
CASES = {
    "llama": (["llama"], IN_PROCESS),
    "graphs": (
        ["llama", "enforce_eager=false", "kv_cache_memory_bytes=null", "gpu_memory_utilization=0.1"],
        IN_PROCESS,
    ),
    "chunks": (["llama", "max_num_batched_tokens=32"], IN_PROCESS),
    "two ranks": (["llama", "tensor_parallel_size=2"], {"MUSA_EMULATOR_DEVICES": "2"}),
    "window": (["window"], IN_PROCESS),
    "gemma": (["gemma"], IN_PROCESS),
    "experts": (["qwen_moe"], IN_PROCESS),
    "latent": (["deepseek"], IN_PROCESS),
}


@pytest.mark.parametrize("name", CASES)
def test_greedy_tokens_are_those_of_transformers_on_the_cpu(tmp_path: Path, name: str) -> None:
    (kind, *arguments), variables = CASES[name]
    done = run(PROGRAMS / "generate.py", kind, str(tmp_path), *arguments, **variables)
    tokens = result(done)
    assert tokens["actual"] == tokens["expected"]
    # The second round found the whole blocks of the longer prompts in the cache.
    assert re.search(r"cached \[0, 32, 0, 80, 0\]", done.stderr)
    # The runner logs it after all graphs were captured.
    assert ("Graph capturing finished" in done.stdout + done.stderr) == ("enforce_eager=false" in arguments)
    if variables == IN_PROCESS:
        # muDNN computes attention within prompts that the cache has no part of, if it has the layer's case:
        # no soft cap, no latent vectors, and no window that is shorter than the prompts.
        served = kind not in ("window", "gemma", "deepseek")
        assert set(tokens["packed"]) == ({"mudnn"} if served else set())


def test_a_server_survives_bad_requests_and_ends_with_a_killed_worker(tmp_path: Path) -> None:
    found = result(run(PROGRAMS / "server.py", str(tmp_path), MUSA_EMULATOR_DEVICES="2"))
    assert "256" in found["too long"]
    assert found["cancelled"] and found["goes on"]
    assert found["error of the client"] and found["server ended"] and found["processes left"] == 0


def test_the_example_gets_an_answer_to_every_request() -> None:
    done = run(ROOT / "examples" / "serving" / "serve.py", "--requests=60")
    assert "60 requests in" in done.stdout and "vllm:generation_tokens_total" in done.stdout


ERRORS = {
    "cache": (["kv_cache_memory_bytes=1024"], "No available memory for the cache blocks"),
    "devices": (["tensor_parallel_size=2"], "Rank 1 needs the musa device 1, and 1 are visible"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_impossible_setting_ends_with_a_clear_error(tmp_path: Path, name: str) -> None:
    arguments, message = ERRORS[name]
    variables = IN_PROCESS if name == "cache" else {"MUSA_EMULATOR_DEVICES": "1"}
    with pytest.raises(AssertionError, match=message):
        run(PROGRAMS / "generate.py", "llama", str(tmp_path), *arguments, **variables)


def rows() -> list[tuple[str, int, str]]:
    """Returns file, line and text of the page's table of overridden parts."""
    page = (ROOT / "docs" / "design" / "vllm.md").read_text()
    return [
        (a, int(b), c)
        for a, b, c in re.findall(r"^\| `(vllm/[^`:]+):(\d+)` \| `([^`]+)` \|", page, re.MULTILINE)
    ]


def test_the_design_page_names_lines_of_the_installed_vllm() -> None:
    code = "import importlib.util; print(importlib.util.find_spec('vllm').submodule_search_locations[0])"
    done = subprocess.run([str(environment.python()), "-c", code], capture_output=True, text=True, check=True)
    installed = Path(done.stdout.strip()).parent
    assert len(rows()) >= 10
    for file, line, text in rows():
        assert text in (installed / file).read_text().splitlines()[line - 1], (file, line)
