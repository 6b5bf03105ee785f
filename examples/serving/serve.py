# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Serves a language model on musa with vLLM, calls the server as a client does, and puts load on it.

    python serve.py                                  # a small model with random weights
    python serve.py --model /models/Qwen3-8B -- --max-model-len 8192

Arguments after `--` go to `vllm serve`. The server listens on the loopback interface alone. The exit status
is 0 if every request of the load got a whole answer, or the error that it should get.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import models
import openai

START_SECONDS = 600  # of a server; loading a large model takes minutes
NAME = "served"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def server(model: str, arguments: list[str]) -> Iterator[str]:
    """Starts the server and yields its address. Ends it, with the processes that it started, afterwards."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", model, "--served-model-name", NAME]
    command += ["--host", "127.0.0.1", "--port", str(port), *arguments]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            if process.poll() is not None:
                raise SystemExit(
                    f"The server ended with status {process.returncode} before it was ready; see above."
                )
            if time.monotonic() > deadline:
                raise SystemExit(f"The server was not ready after {START_SECONDS} s.")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{address}/health", timeout=5).status_code == 200:
                    break
            time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def calls(address: str) -> None:
    """Prints a completion, a chat and a stream."""
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none")
    print("models:", [model.id for model in client.models.list()])
    completion = client.completions.create(model=NAME, prompt="w5 w9 w13", max_tokens=8, temperature=0)
    print("completion:", completion.choices[0].text)
    message = {"role": "user", "content": "w20 w21"}
    chat = client.chat.completions.create(model=NAME, messages=[message], max_tokens=8, temperature=0)
    print("chat:", chat.choices[0].message.content)
    stream = client.completions.create(model=NAME, prompt="w5", max_tokens=8, temperature=0, stream=True)
    print("stream:", "".join(part.choices[0].text for part in stream))


async def load(address: str, requests: int, at_once: int) -> Counter[str]:
    """Sends requests of different lengths, `at_once` at a time. Returns the number of each kind of answer.

    Every tenth request is cancelled by its client, and every eleventh asks for more tokens than the model
    serves.
    """
    client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=300)
    longest = (await client.models.list()).data[0].model_dump()["max_model_len"]
    gate = asyncio.Semaphore(at_once)
    answers: Counter[str] = Counter()

    async def one(number: int) -> None:
        prompt = " ".join(f"w{3 + (number * 7 + i) % 200}" for i in range(1 + number % 40))
        length = 1 + number % 16
        arguments = {"model": NAME, "prompt": prompt, "temperature": 0, "extra_body": {"ignore_eos": True}}
        async with gate:
            if number % 11 == 5:
                try:
                    await client.completions.create(**arguments, max_tokens=longest + 1)
                except openai.BadRequestError:
                    answers["refused as too long"] += 1
            elif number % 10 == 3:
                stream = await client.completions.create(**arguments, max_tokens=longest // 2, stream=True)
                async for _ in stream:
                    break
                await stream.close()
                answers["cancelled by the client"] += 1
            else:
                answer = await client.completions.create(**arguments, max_tokens=length)
                whole = answer.usage is not None and answer.usage.completion_tokens == length
                answers["whole" if whole else "not whole"] += 1

    results = await asyncio.gather(*(one(number) for number in range(requests)), return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            answers[f"failed: {type(result).__name__}"] += 1
    return answers


def expected(requests: int) -> Counter[str]:
    kinds = (
        "refused as too long" if n % 11 == 5 else "cancelled by the client" if n % 10 == 3 else "whole"
        for n in range(requests)
    )
    return Counter(kinds)


METRICS = (
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:num_requests_running",
    "vllm:prefix_cache_hits_total",
)


def metrics(address: str) -> None:
    """Prints some of the server's metrics for Prometheus."""
    for line in httpx.get(f"{address}/metrics", timeout=30).text.splitlines():
        if line.startswith(METRICS):
            print(line)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", help="a folder of transformers; default: a small model with random weights"
    )
    parser.add_argument("--requests", type=int, default=60, help="requests of the load")
    parser.add_argument("--at-once", type=int, default=8, help="requests at a time")
    parser.add_argument("rest", nargs="*", help="arguments of `vllm serve`, after --")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, rest = arguments.model, arguments.rest
        if model is None:
            models.write("llama", Path(folder))
            model = folder
            rest = ["--max-model-len=256", "--max-num-seqs=8", "--kv-cache-memory-bytes=16777216", *rest]
        with server(model, rest) as address:
            calls(address)
            begin = time.monotonic()
            answers = asyncio.run(load(address, arguments.requests, arguments.at_once))
            print(f"{arguments.requests} requests in {time.monotonic() - begin:.1f} s: {dict(answers)}")
            metrics(address)
    return int(answers != expected(arguments.requests))


if __name__ == "__main__":
    sys.exit(main())
