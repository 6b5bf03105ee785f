# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Generates greedily with vLLM on musa and with transformers on the CPU. Prints both as JSON.

    python generate.py KIND FOLDER [NAME=VALUE]...

FOLDER receives the model. The names are arguments of `vllm.LLM`, their values JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "serving"))
import models

LENGTH = 24
PROMPTS = [[5, 9, 13, 21, 34], [7] * 40, [200, 100, 50, 25, 12, 6, 3], list(range(3, 90)), [11]]


def with_transformers(folder: Path) -> list[list[int]]:
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    results = []
    for prompt in PROMPTS:
        tokens = model.generate(
            torch.tensor([prompt]), max_new_tokens=LENGTH, do_sample=False, eos_token_id=None, pad_token_id=2
        )
        results.append(tokens[0, len(prompt) :].tolist())
    return results


def with_vllm(folder: Path, **arguments: object) -> list[list[int]]:
    from vllm import LLM, SamplingParams

    defaults = {"dtype": "float32", "enforce_eager": True, "max_model_len": 256, "max_num_seqs": 8, "seed": 0}
    model = LLM(str(folder), **{**defaults, "kv_cache_memory_bytes": 2**24, **arguments})
    sampling = SamplingParams(temperature=0, max_tokens=LENGTH, ignore_eos=True)
    # Twice: the second time with a filled prefix cache.
    for _ in range(2):
        outputs = model.generate(
            [{"prompt_token_ids": prompt} for prompt in PROMPTS], sampling, use_tqdm=False
        )
    print("cached", [output.num_cached_tokens for output in outputs], file=sys.stderr)
    return [list(output.outputs[0].token_ids) for output in outputs]


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    if not (folder / "config.json").exists():
        models.write(kind, folder)
    arguments = {name: json.loads(value) for name, value in (word.split("=", 1) for word in sys.argv[3:])}
    expected = with_transformers(folder)
    actual = with_vllm(folder, **arguments)
    # Of this process: vLLM's engine is in it only if the environment says so.
    packed = torch.musa.ops.explain("aten::_flash_attention_forward")["candidates"]
    calls = {one["provider"]: one["calls"] for one in packed if one["calls"]}
    print(json.dumps({"expected": expected, "actual": actual, "packed": calls}))
