# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""transformers generates the CPU's tokens on musa: caches, samplers, batches, pipelines, placement,
serving."""

from __future__ import annotations

import pytest
import torch
import transformers
from transformers import GenerationConfig

from tests.ecosystem import tiny
from tests.ecosystem.tiny import tokens

NEW = 8


def prompts(device: str) -> dict[str, torch.Tensor]:
    """Two prompts, the second one padded on the left."""
    numbers, mask = tokens(2, 6), torch.ones(2, 6, dtype=torch.int64)
    numbers[1, :2], mask[1, :2] = 0, 0
    return {"input_ids": numbers.to(device), "attention_mask": mask.to(device)}


def wide(device: str, **arguments) -> transformers.LlamaForCausalLM:
    """A model whose weights are large enough for tokens that depend on the prompt."""
    model = tiny.llama("cpu", initializer_range=0.4, **arguments).eval()
    return model.to(device)


GREEDY = {"max_new_tokens": NEW, "do_sample": False}
VARIANTS = {
    "greedy": {},
    "scores": {"output_scores": True, "output_logits": True, "return_dict_in_generate": True},
    "without cache": {"use_cache": False},
    "static cache": {"cache_implementation": "static", "disable_compile": True},
    "quantities": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 4},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "beams with length penalty": {"num_beams": 2, "length_penalty": 0.5, "early_stopping": True},
    "prompt lookup": {"prompt_lookup_num_tokens": 2},
    "stop at a token": {"eos_token_id": list(range(3, 40))},
    "attentions": {"output_attentions": True, "output_hidden_states": True, "return_dict_in_generate": True},
}


def plain(output):
    """Tokens, or the entries of an output dictionary except the cache."""
    if isinstance(output, torch.Tensor):
        return output
    return {name: value for name, value in output.items() if name != "past_key_values" and value is not None}


@pytest.mark.parametrize("variant", VARIANTS)
def test_generate(variant, both):
    def program(device):
        attention = {"attn_implementation": "eager"} if variant == "attentions" else {}
        inputs = prompts(device)
        if variant == "prompt lookup":  # takes one sequence
            inputs = {name: value[:1] for name, value in inputs.items()}
        return plain(wide(device, **attention).generate(**inputs, **{**GREEDY, **VARIANTS[variant]}))

    found = both(program, within=1e-4)
    assert (found if isinstance(found, torch.Tensor) else found["sequences"]).unique().numel() > 4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision(dtype, both):
    both(lambda device: wide(device).to(dtype).generate(**prompts(device), **GREEDY))


def test_sampling_takes_the_same_numbers_with_the_same_seed(both):
    """Devices draw different numbers, so the distribution is compared, and a repetition on the device."""

    def program(device):
        model = wide(device)
        found = []
        for _ in range(2):
            torch.manual_seed(3)
            found.append(
                model.generate(
                    **prompts(device),
                    max_new_tokens=NEW,
                    do_sample=True,
                    top_k=20,
                    top_p=0.9,
                    temperature=0.8,
                    output_scores=True,
                    return_dict_in_generate=True,
                )
            )
        assert torch.equal(found[0].sequences, found[1].sequences)
        return found[0].scores[0].softmax(-1)

    both(program)


def test_a_streamer_gets_each_token(both):
    class Kept(transformers.generation.streamers.BaseStreamer):
        def __init__(self):
            self.seen = []

        def put(self, value):
            self.seen += value.flatten().tolist()

        def end(self):
            self.seen.append("end")

    def program(device):
        streamer = Kept()
        one = {name: value[:1] for name, value in prompts(device).items()}
        output = wide(device).generate(**one, **GREEDY, streamer=streamer)
        assert streamer.seen[-1] == "end" and streamer.seen[:-1] == output.flatten().tolist()
        return output

    both(program)


def test_assisted_generation(both):
    def program(device):
        one = {name: value[:1] for name, value in prompts(device).items()}
        return wide(device).generate(**one, **GREEDY, assistant_model=wide(device, num_hidden_layers=1))

    both(program)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.full)])
def test_static_cache_compiled(backend, both):
    """The decoding step is compiled with the configuration passed to generate."""

    def program(device):
        torch._dynamo.reset()
        compiled = transformers.CompileConfig(backend=backend, mode=None, fullgraph=False)
        compiled._compile_all_devices = True
        options = {**GREEDY, "cache_implementation": "static", "compile_config": compiled}
        return wide(device).generate(**prompts(device), **options)

    both(program, watch_modules=False)


@pytest.mark.full
def test_the_forward_pass_compiled_with_a_static_cache(both):
    """As in serving programs: one compiled function, and a cache that is created once."""

    def program(device):
        torch._dynamo.reset()
        model = wide(device)
        inputs = tokens(2, 6).to(device)
        cache = transformers.StaticCache(config=model.config, max_cache_len=16)
        step = torch.compile(model.forward)
        found = []
        with torch.no_grad():
            logits = model(inputs, past_key_values=cache, use_cache=True).logits
            for _ in range(4):
                following = logits[:, -1:].argmax(-1)
                found.append(following)
                logits = step(following, past_key_values=cache, use_cache=True).logits
        return {"tokens": found, "logits": logits}

    both(program, within=1e-4, watch_modules=False)


@pytest.mark.parametrize("implementation", ["offloaded", "offloaded_static"])
def test_offloaded_cache(implementation, both):
    options = {**GREEDY, "cache_implementation": implementation, "disable_compile": True}
    both(lambda device: wide(device).generate(**prompts(device), **options))


CONTINUOUS = {"num_blocks": 16, "max_batch_tokens": 64}


def served(device: str, **continuous):
    """Tokens of three requests of different lengths."""
    from transformers.generation import ContinuousBatchingConfig

    model = wide(device)
    configuration = GenerationConfig(**GREEDY, eos_token_id=-1, pad_token_id=0)
    settings = ContinuousBatchingConfig(**continuous)
    requests = [tokens(length, seed=length).tolist() for length in (4, 7, 5)]
    outputs = model.generate_batch(
        inputs=requests,
        generation_config=configuration,
        continuous_batching_config=settings,
        progress_bar=False,
    )
    found = [outputs[name].generated_tokens for name in sorted(outputs)]
    assert [len(sequence) for sequence in found] == [NEW] * 3
    one_by_one = [
        model.generate(torch.tensor([request], device=device), generation_config=configuration)[
            0, len(request) :
        ]
        for request in requests
    ]
    assert found == [sequence.tolist() for sequence in one_by_one]
    return found


def test_continuous_batching(both):
    """Paged attention in one batch gives the tokens of generate, for each request."""
    both(lambda device: served(device, **CONTINUOUS))


def test_continuous_batching_is_sized_by_the_memory_of_the_device():
    """Without given sizes, transformers divides the memory that this function returns."""
    from transformers.generation.continuous_batching.utils import get_device_and_memory_breakdown

    device, total, *_ = get_device_and_memory_breakdown()
    assert device.type == "musa", f"sized by the memory of {device}"
    assert total <= torch.musa.mem_get_info()[1]


@pytest.mark.parametrize("task", ["text-generation", "image-classification"])
def test_a_pipeline_finds_the_device(task, both):
    """A pipeline without a device argument; the CPU's comparison names it."""

    def program(device):
        where = {} if device == "musa" else {"device": "cpu"}
        if task == "text-generation":
            pipe = transformers.pipeline(task, model=wide("cpu"), tokenizer=tokenizer(), **where)
            text = pipe("w5 w9 w12", max_new_tokens=4, do_sample=False)[0]["generated_text"]
        else:
            options = {**tiny.SMALL, **tiny.NO_DROPOUT, "image_size": 16, "patch_size": 8}
            model = tiny.model("ViTForImageClassification", tiny.config("ViT", **options), "cpu").eval()
            processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
            pipe = transformers.pipeline(task, model=model, image_processor=processor, **where)
            text = [(entry["label"], entry["score"]) for entry in pipe(picture())]
        assert pipe.device.type == device
        return text

    both(program, within=1e-4)


def picture():
    from PIL import Image

    return Image.fromarray(tokens(16, 16, 3).to(torch.uint8).numpy())


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Words w0 to w98."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"w{number}": number for number in range(tiny.VOCABULARY)}
    made = Tokenizer(models.WordLevel(words, unk_token="w3"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="w3", pad_token="w0", eos_token="w2"
    )


PLACES = {
    "auto": ("auto", {}),
    "name": ("musa", {}),
    "number": (0, {}),
    "two devices": ("balanced", {}),
    "by module": ({"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.norm": 1,
                   "model.rotary_emb": 0, "lm_head": 1}, {}),
    "part on the CPU": ({"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": "cpu", "model.norm":
    0,
                         "model.rotary_emb": 0, "lm_head": 0}, {}),
    "part on the disk": ({"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": "disk",
    "model.norm": 0,
                          "model.rotary_emb": 0, "lm_head": 0}, {"offload_folder": "offloaded"}),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_device_map(place, both, tmp_path):
    wide("cpu").save_pretrained(tmp_path / "saved")
    device_map, options = PLACES[place]

    def program(device):
        where = {"device_map": device_map, **options} if device == "musa" else {}
        model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "saved", **where).eval()
        output = model.generate(**prompts(device), **GREEDY)
        with torch.no_grad():
            logits = model(prompts(device)["input_ids"]).logits
        devices = {str(parameter.device) for parameter in model.parameters()}
        if device == "musa" and place in ("two devices", "by module"):
            assert devices == {"musa:0", "musa:1"}, devices
        return {"tokens": output, "logits": logits.to(device)}

    both(program, within=1e-4)


def test_memory_figures_that_packages_query():
    """torch.accelerator and torch.musa report the device's free and total memory; allocations change them."""
    free, total = torch.accelerator.get_memory_info()
    assert (free, total) == tuple(torch.musa.mem_get_info()) and 0 < free <= total
    assert total == torch.musa.get_device_properties(0).total_memory
    held = torch.empty(64 * 2**20, dtype=torch.uint8, device="musa")
    less, _ = torch.accelerator.get_memory_info()
    assert free - less >= held.numel() or torch.accelerator.memory_reserved() >= held.numel()
    assert torch.accelerator.memory_allocated() >= held.numel()
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_allocated()
    from accelerate.utils import get_max_memory

    limits = get_max_memory()
    assert limits[0] <= total and limits[0] >= 0.5 * less
