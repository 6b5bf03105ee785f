# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""transformers: architectures of each kind give the CPU's losses, gradients and outputs on musa."""

from __future__ import annotations

import pytest
import torch

from tests.ecosystem import tiny
from tests.ecosystem.tiny import GROUPED, NO_DROPOUT, SMALL, images, tokens
from tests.ecosystem.training import gradients, moved


def text() -> dict[str, torch.Tensor]:
    """Two sequences, the second one padded on the right."""
    numbers, mask = tokens(2, 12), torch.ones(2, 12, dtype=torch.int64)
    mask[1, 9:] = 0
    return {"input_ids": numbers, "attention_mask": mask}


def causal() -> dict[str, torch.Tensor]:
    return {**text(), "labels": tokens(2, 12)}


def classified() -> dict[str, torch.Tensor]:
    return {**text(), "labels": torch.tensor([0, 1])}


def pictures(size: int = 32) -> dict[str, torch.Tensor]:
    return {"pixel_values": images(2, 3, size, size), "labels": torch.tensor([0, 1])}


MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "router_jitter_noise": 0.0}
DECODER = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
}
DECODER |= {
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
MARKS = {name: SMALL[name] for name in ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id")}
GPT2 = {**MARKS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
GPT2 |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
VISION = {**SMALL, **NO_DROPOUT, "image_size": 32, "patch_size": 8}
AUDIO = {**SMALL, **NO_DROPOUT, "conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 5)}
AUDIO |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4}
AUDIO |= {
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "feat_proj_dropout": 0.0,
}
AUDIO |= {"layerdrop": 0.0, "apply_spec_augment": False, "final_dropout": 0.0, "classifier_proj_size": 16}
CLIP = {
    "text_config": {**SMALL, "attention_dropout": 0.0},
    "vision_config": {**VISION, "attention_dropout": 0.0},
    "projection_dim": 16,
}
MLA = {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
MLA |= {
    "n_routed_experts": 4,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "n_shared_experts": 1,
}

# The model's class, its configuration and a batch.
MODELS = {
    "gpt2": ("GPT2LMHeadModel", ("GPT2", GPT2), causal),
    "llama": ("LlamaForCausalLM", ("Llama", GROUPED), causal),
    "mistral": ("MistralForCausalLM", ("Mistral", {**GROUPED, "sliding_window": 4}), causal),
    "qwen2": ("Qwen2ForCausalLM", ("Qwen2", GROUPED), causal),
    "qwen3": ("Qwen3ForCausalLM", ("Qwen3", GROUPED), causal),
    "gemma2": ("Gemma2ForCausalLM", ("Gemma2", {**GROUPED, "sliding_window": 4}), causal),
    "gemma3": ("Gemma3ForCausalLM", ("Gemma3Text", {**GROUPED, "sliding_window": 4}), causal),
    "phi3": ("Phi3ForCausalLM", ("Phi3", {**GROUPED, "resid_pdrop": 0.0}), causal),
    "gpt_neox": ("GPTNeoXForCausalLM", ("GPTNeoX", SMALL), causal),
    "mixtral": ("MixtralForCausalLM", ("Mixtral", {**GROUPED, **MOE, "num_local_experts": 4}), causal),
    "qwen3_moe": ("Qwen3MoeForCausalLM", ("Qwen3Moe", {**GROUPED, **MOE, "num_experts": 4}), causal),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        ("DeepseekV3", {**SMALL, **MOE, **MLA, "num_key_value_heads": 4}),
        causal,
    ),
    "gpt_oss": ("GptOssForCausalLM", ("GptOss", {**GROUPED, **MOE, "num_local_experts": 4}), causal),
    "mamba": ("MambaForCausalLM", ("Mamba", {**SMALL, "state_size": 4}), causal),
    "bert": ("BertForSequenceClassification", ("Bert", {**SMALL, **NO_DROPOUT}), classified),
    "roberta": ("RobertaForSequenceClassification", ("Roberta", {**SMALL, **NO_DROPOUT}), classified),
    "electra": ("ElectraForSequenceClassification", ("Electra", {**SMALL, **NO_DROPOUT}), classified),
    "deberta_v2": ("DebertaV2ForSequenceClassification", ("DebertaV2", {**SMALL, **NO_DROPOUT}), classified),
    "t5": (
        "T5ForConditionalGeneration",
        (
            "T5",
            {
                **MARKS,
                "d_model": 32,
                "d_kv": 8,
                "d_ff": 48,
                "num_layers": 2,
                "num_heads": 4,
                "dropout_rate": 0.0,
                "decoder_start_token_id": 0,
            },
        ),
        lambda: {**causal(), "labels": tokens(2, 7)},
    ),
    "bart": (
        "BartForConditionalGeneration",
        ("Bart", {**MARKS, **DECODER, "max_position_embeddings": 64}),
        lambda: {**causal(), "labels": tokens(2, 7)},
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        (
            "Whisper",
            {
                **MARKS,
                **DECODER,
                "num_mel_bins": 8,
                "max_source_positions": 16,
                "max_target_positions": 16,
                "decoder_start_token_id": 1,
            },
        ),
        lambda: {"input_features": images(2, 8, 32), "labels": tokens(2, 7)},
    ),
    "wav2vec2": (
        "Wav2Vec2ForSequenceClassification",
        ("Wav2Vec2", AUDIO),
        lambda: {"input_values": images(2, 400), "labels": torch.tensor([0, 1])},
    ),
    "vit": ("ViTForImageClassification", ("ViT", VISION), pictures),
    "swin": (
        "SwinForImageClassification",
        (
            "Swin",
            {
                "image_size": 32,
                "patch_size": 4,
                "embed_dim": 16,
                "depths": [1, 1],
                "num_heads": [2, 4],
                "window_size": 4,
                "drop_path_rate": 0.0,
                **NO_DROPOUT,
            },
        ),
        pictures,
    ),
    "convnext": (
        "ConvNextForImageClassification",
        ("ConvNext", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "drop_path_rate": 0.0}),
        pictures,
    ),
    "segformer": (
        "SegformerForSemanticSegmentation",
        (
            "Segformer",
            {
                "hidden_sizes": [8, 16, 16, 32],
                "depths": [1, 1, 1, 1],
                "decoder_hidden_size": 16,
                "num_attention_heads": [1, 1, 2, 2],
                "drop_path_rate": 0.0,
                "classifier_dropout_prob": 0.0,
                **NO_DROPOUT,
            },
        ),
        lambda: {"pixel_values": images(2, 3, 32, 32), "labels": torch.ones(2, 32, 32, dtype=torch.int64)},
    ),
    "clip": (
        "CLIPModel",
        ("CLIP", CLIP),
        lambda: {**text(), "pixel_values": images(2, 3, 32, 32), "return_loss": torch.tensor(True)},
    ),
}


# transformers has no scaled_dot_product_attention for these.
EAGER_ONLY = {"gemma2", "gpt_oss", "mamba", "deberta_v2", "convnext"}
KINDS = [
    (name, kind) for name in MODELS for kind in ("sdpa", "eager") if kind == "eager" or name not in EAGER_ONLY
]


@pytest.mark.parametrize("name, attention", KINDS)
def test_forward_and_backward(name, attention, both):
    kind, (architecture, arguments), batch = MODELS[name]

    def program(device):
        configuration = tiny.config(architecture, **arguments)
        model = tiny.model(kind, configuration, device, attn_implementation=attention).train()
        result = model(**moved(batch(), device))
        result.loss.backward()
        output = result.logits if "logits" in result else result.logits_per_image
        return {"loss": result.loss, "outputs": [output], "gradients": gradients(model)}

    # The group norm of wav2vec2 divides by deviations of few values, which amplifies rounding.
    both(program, within=2e-4 if name == "wav2vec2" else 2e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["llama", "mixtral", "bert", "vit"])
def test_half_precision_weights(name, dtype, both):
    kind, (architecture, arguments), batch = MODELS[name]

    def program(device):
        configuration = tiny.config(architecture, **arguments)
        model = tiny.model(kind, configuration, device).eval().to(dtype)
        inputs = moved(batch(), device)
        for key in inputs:
            inputs[key] = inputs[key].to(dtype) if inputs[key].is_floating_point() else inputs[key]
        with torch.no_grad():
            return model(**inputs).logits

    # A few units in the last place: sums are rounded in another order.
    both(program, within=8 * torch.finfo(dtype).eps)
