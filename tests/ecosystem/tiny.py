# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tiny models of transformers with random weights, and batches for them. Nothing is downloaded."""

from __future__ import annotations

from typing import Any

import torch
import transformers

VOCABULARY = 99
# Arguments of most configurations. Their names differ between architectures; a configuration keeps the others
# as plain attributes.
SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}


def config(architecture: str, **arguments: Any) -> transformers.PretrainedConfig:
    """A small configuration; "Llama" gives a LlamaConfig."""
    return getattr(transformers, f"{architecture}Config")(**arguments)


def model(name: str, configuration: transformers.PretrainedConfig, device: str, **arguments: Any):
    """A model class with seeded weights, on the device."""
    torch.manual_seed(0)
    return getattr(transformers, name)._from_config(configuration, **arguments).to(device)


def llama(device: str, seed: int = 0, **arguments: Any) -> transformers.LlamaForCausalLM:
    """Two layers, 4 heads of 8, 2 key/value heads."""
    torch.manual_seed(seed)
    return transformers.LlamaForCausalLM(config("Llama", **{**GROUPED, **arguments})).to(device)


def tokens(*shape: int, seed: int = 1) -> torch.Tensor:
    """Token numbers of the shape, none of them special."""
    return torch.randint(3, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def images(*shape: int, seed: int = 1) -> torch.Tensor:
    """Normally distributed float32 values of the shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
