# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Whole programs, each one text that gets the device's name: `python -m benchmarks.gpu --programs`.

A maker takes the device and whether the sizes are tiny (for machines without a GPU), and returns a step,
which returns a tensor: a loss, logits, or generated tokens. Packages are imported in the makers: a program
whose package is missing is reported with that reason.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .cases import integers, jagged
from .models import GPT2, Mamba, UNet
from .training import Step, gpt2_step, resnet50_inference, resnet50_step

Maker = Callable[[str, bool], Step]


@dataclass(frozen=True)
class Program:
    """A program of the report.

    Attributes:
        make: takes the device's name and whether the sizes are tiny, and returns the step.
        needs (tuple[str, ...]): modules that must be installed.
        tolerance (float): the largest relative difference of the results' norms; random numbers on the device
            are the same on both.
    """

    make: Maker
    needs: tuple[str, ...] = ()
    tolerance: float = 0.02

    def missing(self) -> list[str]:
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def randn(device: str, *shape: int) -> torch.Tensor:
    """Returns numbers that are made on the host, so that they are equal on all devices."""
    return torch.randn(*shape).to(device)


def training(
    model: nn.Module,
    loss: Callable[[], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    device: str,
    dtype: torch.dtype | None = None,
    clip: float | None = None,
) -> Step:
    """Returns a training step under autocast to `dtype`; float16 with a gradient scaler."""
    scaler = torch.amp.GradScaler(device, enabled=dtype is torch.float16)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            value = loss()
        scaler.scale(value).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        return value.detach()

    return step


def without_gradients(call: Callable[[], torch.Tensor]) -> Step:
    def step() -> torch.Tensor:
        with torch.no_grad():
            return call()

    return step


# Language models


def _llama(device: str, tiny: bool) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = (
        {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
        if tiny
        else {
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
        }
    )
    heads = sizes["num_attention_heads"] // (2 if tiny else 4)
    config = LlamaConfig(vocab_size=32000, num_key_value_heads=heads, max_position_embeddings=4096, **sizes)
    return LlamaForCausalLM(config).to(device, torch.bfloat16)


def llama_generate(device: str, tiny: bool, **options: object) -> Step:
    """Returns a step that generates tokens and returns the logits of the first one.

    Weights are random, so the most likely tokens are nearly equal, and rounding decides among them.
    """
    model = _llama(device, tiny).eval()
    ids = integers(device, 32000, 1, 16)
    count = 4 if tiny else 32
    options = {
        "max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "pad_token_id": 0,
        "return_dict_in_generate": True, "output_logits": True, **options,
    }  # fmt: skip
    return without_gradients(lambda: model.generate(ids, **options).logits[0])


def llama_generate_static(device: str, tiny: bool) -> Step:
    """The forward of each token is compiled: by default transformers does that on devices of its own list."""
    from transformers import CompileConfig

    compiled = CompileConfig()
    compiled._compile_all_devices = True
    return llama_generate(device, tiny, cache_implementation="static", compile_config=compiled)


def llama_continuous_batching(device: str, tiny: bool) -> Step:
    """Returns a step that serves requests of several lengths from a paged cache.

    The step returns the logarithms of the probabilities of the requests' first tokens.

    The cache is sized by hand: transformers divides the host's memory for devices that are not in its list.
    """
    from transformers import GenerationConfig
    from transformers.generation import ContinuousBatchingConfig

    model = _llama(device, tiny).eval()
    count, lengths = (3, [5, 9, 4]) if tiny else (64, [64 + 16 * (number % 12) for number in range(64)])
    requests = [integers("cpu", 32000, 1, length)[0].tolist() for length in lengths]
    greedy = GenerationConfig(max_new_tokens=count, do_sample=False, eos_token_id=-1, pad_token_id=0)
    blocks, batch = (16, 32) if tiny else (2048, 4096)
    cache = ContinuousBatchingConfig(num_blocks=blocks, max_batch_tokens=batch, return_logprobs=True)

    def step() -> torch.Tensor:
        outputs = model.generate_batch(
            requests, generation_config=greedy, continuous_batching_config=cache, progress_bar=False
        )
        return torch.tensor([outputs[name].logprobs[0] for name in sorted(outputs)])

    return step


def llama_prefill(device: str, tiny: bool) -> Step:
    model = _llama(device, tiny).eval()
    ids = integers(device, 32000, *((2, 32) if tiny else (4, 2048)))
    return without_gradients(lambda: model(ids, logits_to_keep=1).logits)


def llama_train(device: str, tiny: bool) -> Step:
    model = _llama(device, tiny).train()
    model.gradient_checkpointing_enable()
    ids = integers(device, 32000, *((2, 32) if tiny else (4, 2048)))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    return training(model, lambda: model(ids, labels=ids).loss, optimizer, device)


def llama_lora(device: str, tiny: bool) -> Step:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(
        _llama(device, tiny).train(), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)
    )
    ids = integers(device, 32000, *((2, 32) if tiny else (2, 1024)))
    optimizer = torch.optim.AdamW((one for one in model.parameters() if one.requires_grad), 1e-4)
    return training(model, lambda: model(ids, labels=ids).loss, optimizer, device)


def bert_train(device: str, tiny: bool) -> Step:
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **(sizes if tiny else {}))
    model = BertForSequenceClassification(config).to(device).train()
    ids = integers(device, 30000, *((2, 16) if tiny else (32, 128)))
    mask, labels = torch.ones_like(ids), integers(device, 2, len(ids))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5, foreach=True)
    return training(
        model,
        lambda: model(ids, attention_mask=mask, labels=labels).loss,
        optimizer,
        device,
        torch.float16,
        clip=1.0,
    )


def mixtral_infer(device: str, tiny: bool) -> Step:
    from transformers import MixtralConfig, MixtralForCausalLM

    sizes = (64, 128, 2, 4) if tiny else (1024, 3584, 8, 16)
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    config = MixtralConfig(
        vocab_size=32000, num_key_value_heads=sizes[-1] // 2, num_local_experts=8, **dict(zip(names, sizes))
    )
    model = MixtralForCausalLM(config).to(device, torch.bfloat16).eval()
    ids = integers(device, 32000, *((2, 16) if tiny else (4, 512)))
    return without_gradients(lambda: model(ids).logits)


def whisper_generate(device: str, tiny: bool) -> Step:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    width, layers, heads = (64, 2, 2) if tiny else (512, 6, 8)
    config = WhisperConfig(
        d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width,
        max_source_positions=50 if tiny else 1500,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).to(device, torch.float16).eval()
    features = randn(device, 1, 80, 100 if tiny else 3000).half()
    count = 4 if tiny else 16
    start = torch.full((1, 1), config.decoder_start_token_id).to(device)
    return without_gradients(
        lambda: model.generate(features, decoder_input_ids=start, max_new_tokens=count, min_new_tokens=count)
    )


def t5_beams(device: str, tiny: bool) -> Step:
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4} if tiny else {}
    config = T5Config(decoder_start_token_id=0, **sizes)
    model = T5ForConditionalGeneration(config).to(device).eval()
    ids = integers(device, 32000, 2 if tiny else 8, 64)
    count = 4 if tiny else 16
    return without_gradients(
        lambda: model.generate(ids, num_beams=4, max_new_tokens=count, min_new_tokens=count)
    )


def wav2vec2_train(device: str, tiny: bool) -> Step:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = Wav2Vec2Config(
        hidden_dropout=0.0, attention_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0,
        activation_dropout=0.0, layerdrop=0.0, apply_spec_augment=False, ctc_zero_infinity=True,
        **(sizes if tiny else {}),
    )  # fmt: skip
    model = Wav2Vec2ForCTC(config).to(device).train()
    sound = randn(device, 2 if tiny else 8, 4000 if tiny else 80000)
    labels = integers(device, 30, len(sound), 8).clamp_(min=1)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5)
    return training(model, lambda: model(sound, labels=labels).loss, optimizer, device)


# Images


def _classifier(name: str, batch: int, dtype: torch.dtype | None, channels_last: bool) -> Maker:
    def make(device: str, tiny: bool) -> Step:
        import timm

        model = timm.create_model(name, num_classes=10)
        side, images_count = 224, 2 if tiny else batch
        layout = torch.channels_last if channels_last else torch.contiguous_format
        model = model.to(device, memory_format=layout).train()
        images = randn(device, images_count, 3, side, side).contiguous(memory_format=layout)
        labels = (torch.arange(images_count) % 10).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
        return training(
            model, lambda: functional.cross_entropy(model(images), labels), optimizer, device, dtype
        )

    return make


def vit_infer(device: str, tiny: bool) -> Step:
    import timm

    model = timm.create_model("vit_tiny_patch16_224" if tiny else "vit_base_patch16_224")
    model = model.to(device, torch.float16).eval()
    images = randn(device, 1 if tiny else 64, 3, 224, 224).half()
    return without_gradients(lambda: model(images))


def _unet(tf32: bool) -> Maker:
    def make(device: str, tiny: bool) -> Step:
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32
        if device == "musa" and hasattr(torch.backends, "mudnn"):
            torch.backends.mudnn.allow_tf32 = tf32
        model = UNet(8 if tiny else 64).to(device)
        images = randn(device, 1 if tiny else 8, 3, *((32, 32) if tiny else (256, 256)))
        target = (images.sum(1, keepdim=True) > 0).float()
        optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
        return training(
            model,
            lambda: functional.binary_cross_entropy_with_logits(model(images), target),
            optimizer,
            device,
        )

    return make


def detection_train(device: str, tiny: bool) -> Step:
    from torchvision.models import detection

    model = detection.retinanet_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=5, min_size=128 if tiny else 512
    )
    model = model.to(device).train()
    images = [
        torch.rand(3, 128 if tiny else 512, 128 if tiny else 512).to(device) for _ in range(1 if tiny else 4)
    ]
    boxes = torch.tensor([[10.0, 10.0, 60.0, 80.0], [30.0, 20.0, 100.0, 90.0]])
    targets = [{"boxes": boxes.to(device), "labels": torch.tensor([1, 2]).to(device)} for _ in images]
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    return training(model, lambda: sum(model(images, targets).values()), optimizer, device)


def diffusion_unet_infer(device: str, tiny: bool) -> Step:
    from diffusers import UNet2DConditionModel

    channels = (32, 64) if tiny else (320, 640, 1280, 1280)
    model = UNet2DConditionModel(
        sample_size=64, block_out_channels=channels, cross_attention_dim=64 if tiny else 768,
        down_block_types=("CrossAttnDownBlock2D",) * (len(channels) - 1) + ("DownBlock2D",),
        up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * (len(channels) - 1),
    )  # fmt: skip
    model = model.to(device, torch.float16).eval()
    noise = randn(device, 2, 4, *((16, 16) if tiny else (64, 64))).half()
    prompt, when = randn(device, 2, 77, 64 if tiny else 768).half(), torch.tensor(500).to(device)
    return without_gradients(lambda: model(noise, when, prompt).sample)


def diffusion_transformer_train(device: str, tiny: bool) -> Step:
    from diffusers import DiTTransformer2DModel

    sizes = (2, 16, 2) if tiny else (12, 64, 12)
    heads, width, layers = sizes
    model = DiTTransformer2DModel(
        num_attention_heads=heads, attention_head_dim=width, num_layers=layers, sample_size=32
    )
    model = model.to(device).train()
    noise = randn(device, 2 if tiny else 16, 4, 32, 32)
    when, labels = integers(device, 1000, len(noise)), integers(device, 1000, len(noise))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=True)

    def loss() -> torch.Tensor:
        found = model(noise, timestep=when, class_labels=labels).sample[:, :4]
        return functional.mse_loss(found.float(), noise)

    return training(model, loss, optimizer, device, torch.bfloat16)


# Sequences, graphs, tables, science


def lstm_train(device: str, tiny: bool) -> Step:
    width = 32 if tiny else 512
    model = nn.ModuleList([nn.LSTM(width, width, 2, batch_first=True), nn.Linear(width, 10)]).to(device)
    x = randn(device, *((4, 8) if tiny else (64, 128)), width)
    labels = integers(device, 10, len(x))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return training(
        model,
        lambda: functional.cross_entropy(model[1](model[0](x)[0][:, -1]), labels),
        optimizer,
        device,
    )


def mamba_train(device: str, tiny: bool) -> Step:
    model = Mamba(*((32, 2) if tiny else (512, 4))).to(device)
    ids = integers(device, 1000, *((2, 16) if tiny else (8, 256)))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    return training(
        model,
        lambda: functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()),
        optimizer,
        device,
        torch.bfloat16,
    )


def graph_train(device: str, tiny: bool) -> Step:
    from torch_geometric.nn import GATConv, GCNConv

    nodes, edges = (100, 500) if tiny else (100_000, 1_000_000)
    model = nn.ModuleList([GCNConv(64, 64), GATConv(64, 16, heads=4), nn.Linear(64, 10)]).to(device)
    x, index, labels = (
        randn(device, nodes, 64),
        integers(device, nodes, 2, edges),
        integers(device, 10, nodes),
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def loss() -> torch.Tensor:
        hidden = model[1](model[0](x, index).relu(), index).relu()
        return functional.cross_entropy(model[2](hidden), labels)

    return training(model, loss, optimizer, device)


def gaussian_process(device: str, tiny: bool) -> Step:
    import gpytorch

    class Exact(gpytorch.models.ExactGP):
        def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: nn.Module) -> None:
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    x = torch.rand(40 if tiny else 2000, 4).to(device)
    y = (x.sum(1) * 6).sin()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    model = Exact(x, y, likelihood).to(device).train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return training(model, lambda: -mll(model(x), y), optimizer, device)


def recommendation_train(device: str, tiny: bool) -> Step:
    """DLRM: embedding bags of categories, products of all pairs, a perceptron."""
    tables, rows, width, batch = (3, 50, 8, 16) if tiny else (26, 100_000, 64, 4096)
    bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
    low = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
    pairs = (tables + 1) * tables // 2
    high = nn.Sequential(nn.Linear(pairs + width, 512), nn.ReLU(), nn.Linear(512, 1))
    model = nn.ModuleList([bags, low, high]).to(device)
    dense = randn(device, batch, 13)
    places = [integers(device, rows, batch, 4) for _ in range(tables)]
    clicks = integers(device, 2, batch).float()
    row, column = torch.tril_indices(tables + 1, tables + 1, -1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)

    def loss() -> torch.Tensor:
        features = low(dense)
        every = torch.stack([features, *(bag(index) for bag, index in zip(bags, places))], 1)
        products = (every @ every.mT)[:, row, column]
        logits = high(torch.cat((features, products), 1))[:, 0]
        return functional.binary_cross_entropy_with_logits(logits, clicks)

    return training(model, loss, optimizer, device)


def policy_train(device: str, tiny: bool) -> Step:
    """PPO: an update of an actor and a critic with clipped ratios, from advantages of a rollout."""
    length, envs, epochs = (8, 4, 1) if tiny else (128, 64, 4)
    actor, critic = (
        nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, out))
        for out in (6, 1)
    )
    model = nn.ModuleList([actor, critic]).to(device)
    states, actions = randn(device, length, envs, 32), integers(device, 6, length, envs)
    rewards, old = randn(device, length, envs), torch.full((length, envs), -1.8).to(device)
    order = torch.randperm(length * envs).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)

    def step() -> torch.Tensor:
        with torch.no_grad():
            values = critic(states)[..., 0]
            advantages, last = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
            for when in reversed(range(length - 1)):
                delta = rewards[when] + 0.99 * values[when + 1] - values[when]
                last = delta + 0.99 * 0.95 * last
                advantages[when] = last
            returns = advantages + values
        for _ in range(epochs):
            for part in order.chunk(4):
                chosen = states.flatten(0, 1)[part]
                spread = torch.distributions.Categorical(logits=actor(chosen))
                ratio = (spread.log_prob(actions.flatten()[part]) - old.flatten()[part]).exp()
                gain = advantages.flatten()[part]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                error = functional.mse_loss(critic(chosen)[:, 0], returns.flatten()[part])
                loss = 0.5 * error - surrogate - 0.01 * spread.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
        return loss.detach()

    return step


def fourier_train(device: str, tiny: bool) -> Step:
    """A Fourier neural operator: spectral convolutions in two dimensions."""
    width, side, modes, batch = (8, 16, 4, 2) if tiny else (64, 128, 16, 16)

    class Spectral(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width)
            self.skip = nn.Conv2d(width, width, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            spectrum = torch.fft.rfft2(x)
            found = torch.zeros_like(spectrum)
            low = spectrum[..., :modes, :modes]
            found[..., :modes, :modes] = torch.einsum("bixy,ioxy->boxy", low, self.weight)
            return functional.gelu(torch.fft.irfft2(found, s=x.shape[-2:]) + self.skip(x))

    layers = [nn.Conv2d(1, width, 1), *(Spectral() for _ in range(4)), nn.Conv2d(width, 1, 1)]
    model = nn.Sequential(*layers).to(device)
    x = randn(device, batch, 1, side, side)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return training(model, lambda: functional.mse_loss(model(x), x), optimizer, device)


def spectrogram(device: str, tiny: bool) -> Step:
    sound = randn(device, *((2, 4000) if tiny else (32, 160_000)))
    window, mel = torch.hann_window(400).to(device), torch.rand(80, 201).to(device)

    def call() -> torch.Tensor:
        power = torch.stft(sound, 400, 160, window=window, return_complex=True).abs().square()
        return (mel @ power).clamp(min=1e-10).log10()

    return without_gradients(call)


def jagged_attention(device: str, tiny: bool) -> Step:
    q = jagged(device, [3, 5, 2], 2, 8) if tiny else jagged(device)
    return without_gradients(lambda: functional.scaled_dot_product_attention(q, q, q).values())


def masked_attention(device: str, tiny: bool) -> Step:
    """Grouped heads with a mask of booleans and gradients."""
    batch, heads, length, width = (1, 4, 16, 8) if tiny else (4, 32, 1024, 128)
    q = randn(device, batch, heads, length, width).bfloat16().requires_grad_()
    k, v = (randn(device, batch, heads // 4, length, width).bfloat16().requires_grad_() for _ in range(2))
    mask = torch.ones(length, length, dtype=torch.bool).tril().to(device)

    def step() -> torch.Tensor:
        for one in (q, k, v):
            one.grad = None
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        y.sum().backward()
        return q.grad.float().abs().mean()

    return step


def loader_train(device: str, tiny: bool) -> Step:
    """A DataLoader with pinned memory in two processes, and copies that do not wait."""
    data = torch.utils.data.TensorDataset(torch.randn(64 if tiny else 4096, 3, 64, 64))
    loader = torch.utils.data.DataLoader(data, 16 if tiny else 256, num_workers=2, pin_memory=True)
    model = nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 2), nn.ReLU()).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step() -> torch.Tensor:
        for (images,) in loader:
            loss = model(images.to(device, non_blocking=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step


def _gpt2(mode: str | None, dynamic: bool = False) -> Maker:
    """GPT-2's training step, compiled in a mode; dynamic shapes take three lengths in turn."""

    def make(device: str, tiny: bool) -> Step:
        if mode is None:
            return gpt2_step(device, False, **({"batch": 1, "length": 16, "depth": 1} if tiny else {}))
        length = 32 if tiny else 512
        model = torch.compile(GPT2(length, 1 if tiny else 12).to(device), mode=mode, dynamic=dynamic or None)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
        ids = integers(device, 50257, 1 if tiny else 8, length + 1)
        lengths = (length, length * 3 // 4, length // 2) if dynamic else (length,)
        count = 0

        def loss() -> torch.Tensor:
            nonlocal count
            part = ids[:, : lengths[count % len(lengths)] + 1]
            count += 1
            return functional.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten())

        return training(model, loss, optimizer, device, torch.bfloat16)

    return make


def _optimizers(device: str, tiny: bool) -> Step:
    """Steps of four optimizers over the parameters of GPT-2: foreach, fused, capturable."""
    model = GPT2(16, 1 if tiny else 12).to(device)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter) * 1e-3
    parameters = list(model.parameters())
    every = [
        torch.optim.AdamW(parameters, 1e-4, foreach=True),
        torch.optim.AdamW(parameters, 1e-4, fused=True),
        torch.optim.AdamW(parameters, 1e-4, capturable=True),
        torch.optim.SGD(parameters, 1e-4, momentum=0.9, foreach=True),
    ]

    def step() -> torch.Tensor:
        for optimizer in every:
            optimizer.step()
        return parameters[0].detach().abs().mean()

    return step


def flex_attention(device: str, tiny: bool) -> Step:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    if device == "musa":
        torch.musa.flex_attention.enable()  # torch's list of devices is literal
    batch, heads, length, width = (1, 2, 128, 16) if tiny else (4, 16, 2048, 64)
    q, k, v = (randn(device, batch, heads, length, width).half() for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device=device)
    compiled = torch.compile(flex_attention)
    return without_gradients(lambda: compiled(q, k, v, block_mask=mask))


def _resnet50(step: Callable[..., Step]) -> Maker:
    return lambda device, tiny: step(device, False, **({"batch": 2, "size": 64} if tiny else {}))


PROGRAMS: dict[str, Program] = {
    "llama-generate": Program(llama_generate, ("transformers",)),
    "llama-generate-static": Program(llama_generate_static, ("transformers",)),
    "llama-continuous-batching": Program(llama_continuous_batching, ("transformers",)),
    "llama-prefill": Program(llama_prefill, ("transformers",)),
    "llama-train": Program(llama_train, ("transformers",)),
    "llama-lora": Program(llama_lora, ("transformers", "peft")),
    "bert-train": Program(bert_train, ("transformers",)),
    "mixtral-infer": Program(mixtral_infer, ("transformers",)),
    "whisper-generate": Program(whisper_generate, ("transformers",)),
    "t5-beams": Program(t5_beams, ("transformers",)),
    "wav2vec2-train": Program(wav2vec2_train, ("transformers",)),
    "vit-infer": Program(vit_infer, ("timm",)),
    "convnext-train": Program(_classifier("convnext_tiny", 64, torch.float16, True), ("timm",)),
    "efficientnet-train": Program(_classifier("efficientnet_b0", 128, torch.float16, False), ("timm",)),
    "swin-train": Program(_classifier("swin_tiny_patch4_window7_224", 64, torch.float16, False), ("timm",)),
    "resnet50-train": Program(_resnet50(resnet50_step)),
    "resnet50-infer": Program(_resnet50(resnet50_inference)),
    "unet-train": Program(_unet(False)),
    "unet-train-tf32": Program(_unet(True)),
    "detection-train": Program(detection_train, ("torchvision",)),
    "diffusion-unet-infer": Program(diffusion_unet_infer, ("diffusers",)),
    "diffusion-transformer-train": Program(diffusion_transformer_train, ("diffusers",)),
    "lstm-train": Program(lstm_train),
    "mamba-train": Program(mamba_train),
    "graph-train": Program(graph_train, ("torch_geometric",)),
    "gaussian-process-train": Program(gaussian_process, ("gpytorch",)),
    "recommendation-train": Program(recommendation_train),
    "policy-train": Program(policy_train),
    "fourier-train": Program(fourier_train),
    "spectrogram": Program(spectrogram),
    "jagged-attention": Program(jagged_attention),
    "masked-attention-train": Program(masked_attention),
    "flex-attention": Program(flex_attention),
    "loader-train": Program(loader_train),
    "optimizers": Program(_optimizers),
    "gpt2-train": Program(_gpt2(None)),
    "gpt2-train-compiled": Program(_gpt2("default")),
    "gpt2-train-compiled-graphs": Program(_gpt2("reduce-overhead")),
    "gpt2-train-compiled-dynamic": Program(_gpt2("default", dynamic=True)),
}
