# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes small language models with random weights, as checkpoints of transformers.

python models.py KIND FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

VOCABULARY = 256
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
EXPERTS = {"moe_intermediate_size": 32, "num_experts_per_tok": 2}


def configuration(kind: str):
    import transformers

    if kind == "llama":
        return transformers.LlamaConfig(**COMMON)
    if kind == "window":
        return transformers.MistralConfig(**COMMON, sliding_window=16)
    if kind == "gemma":
        return transformers.Gemma2Config(**COMMON, head_dim=16, sliding_window=16, query_pre_attn_scalar=16)
    if kind == "qwen_moe":
        return transformers.Qwen3MoeConfig(
            **COMMON, **EXPERTS, head_dim=16, num_experts=8, norm_topk_prob=True
        )
    if kind == "deepseek":
        sizes = {
            "kv_lora_rank": 32,
            "q_lora_rank": 24,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 16,
            "head_dim": 8,
        }
        return transformers.DeepseekV3Config(
            **{**COMMON, "num_key_value_heads": 4},
            **EXPERTS,
            **sizes,
            n_routed_experts=8,
            n_group=2,
            topk_group=1,
            n_shared_experts=1,
            first_k_dense_replace=1,
            routed_scaling_factor=1.5,
            # As in the configuration of DeepSeek-V3; transformers has no defaults for them.
            topk_method="noaux_tc",
            scoring_func="sigmoid",
        )
    raise ValueError(kind)


def tokenizer():
    """Returns a tokenizer whose words are w3, w4, ..."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    words = ["<s>", "</s>", "<pad>", *(f"w{i}" for i in range(3, VOCABULARY))]
    model = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>"))
    model.pre_tokenizer = WhitespaceSplit()
    result = PreTrainedTokenizerFast(
        tokenizer_object=model, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<pad>"
    )
    result.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}w7"
    return result


def write(kind: str, folder: Path) -> None:
    """Writes configuration, weights in float32 and tokenizer."""
    import transformers

    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(configuration(kind)).eval()
    with torch.no_grad():
        # Larger than in a model that is to be trained, so that the most probable token is clearly so.
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.2)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
