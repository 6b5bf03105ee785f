# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Starts `vllm serve`, makes it fail in ways that users meet, and prints what happened as JSON.

    python server.py FOLDER

A prompt that is longer than the model serves and a cancelled request leave the server as it was. A killed
worker ends it, and its client gets an error.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path

import httpx
import openai
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "serving"))
import models
import serve

ARGUMENTS = ["--dtype=float32", "--max-model-len=256", "--max-num-seqs=8", "--kv-cache-memory-bytes=16777216"]
ARGUMENTS += ["--enforce-eager", "--tensor-parallel-size=2"]


def running(address: str) -> float:
    lines = httpx.get(f"{address}/metrics", timeout=30).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running"))


def until(condition, seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def main(folder: Path) -> None:
    if not (folder / "config.json").exists():
        models.write("llama", folder)
    found: dict[str, object] = {}
    with serve.server(str(folder), ARGUMENTS) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=120)
        ask = {
            "model": serve.NAME,
            "prompt": "w5 w9 w13",
            "temperature": 0,
            "extra_body": {"ignore_eos": True},
        }
        first = client.completions.create(**ask, max_tokens=8).choices[0].text
        try:
            client.completions.create(**{**ask, "prompt": [7] * 300}, max_tokens=8)
        except openai.BadRequestError as error:
            found["too long"] = str(error)
        stream = client.completions.create(**ask, max_tokens=250, stream=True)
        next(iter(stream))
        stream.close()
        found["cancelled"] = until(lambda: running(address) == 0)
        found["goes on"] = client.completions.create(**ask, max_tokens=8).choices[0].text == first

        server = next(process for process in psutil.Process().children() if "serve" in process.cmdline())
        below = server.children(recursive=True)
        workers = [process for process in below if "Worker_TP1" in "".join(process.cmdline())]
        errors: list[str] = []

        def long_request() -> None:
            try:
                client.completions.create(**ask, max_tokens=250)
            except openai.OpenAIError as error:
                errors.append(type(error).__name__)

        thread = threading.Thread(target=long_request)
        thread.start()
        until(lambda: running(address) > 0, 20)
        workers[0].send_signal(signal.SIGKILL)
        thread.join(120)
        found["error of the client"] = errors
        found["server ended"] = until(
            lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
        )
        found["processes left"] = (
            len([process for process in below if process.is_running()])
            if not until(lambda: not any(process.is_running() for process in below))
            else 0
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
