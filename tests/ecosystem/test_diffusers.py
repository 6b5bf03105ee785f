# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""diffusers: schedulers, models, pipelines, offloading and training on musa as on the CPU."""

from __future__ import annotations

import diffusers
import numpy as np
import pytest
import torch
import transformers

from tests.ecosystem import tiny
from tests.ecosystem.test_transformers_serving import tokenizer
from tests.ecosystem.training import gradients

SCHEDULERS = [
    "DDPMScheduler",
    "DDIMScheduler",
    "PNDMScheduler",
    "LMSDiscreteScheduler",
    "EulerDiscreteScheduler",
    "EulerAncestralDiscreteScheduler",
    "HeunDiscreteScheduler",
    "DPMSolverMultistepScheduler",
    "DPMSolverSinglestepScheduler",
    "UniPCMultistepScheduler",
    "DEISMultistepScheduler",
    "KDPM2DiscreteScheduler",
    "FlowMatchEulerDiscreteScheduler",
]


def unet(device: str, **options) -> diffusers.UNet2DModel:
    torch.manual_seed(0)
    sizes = {
        "block_out_channels": (8, 16),
        "norm_num_groups": 4,
        "layers_per_block": 1,
        "attention_head_dim": 8,
    }
    blocks = {
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
        "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    }
    return diffusers.UNet2DModel(sample_size=16, **{**sizes, **blocks, **options}).to(device)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_denoising(name, both):
    def program(device):
        model = unet(device).eval()
        scheduler = getattr(diffusers, name)()
        scheduler.set_timesteps(4, device=device)
        generator = torch.Generator().manual_seed(5)  # the CPU's generator, so that both draw the same noise
        sample = torch.randn(1, 3, 16, 16, generator=generator).to(device)
        sample = sample * getattr(scheduler, "init_noise_sigma", 1.0)
        more = {"generator": generator} if "generator" in scheduler.step.__code__.co_varnames else {}
        with torch.no_grad():
            for step in scheduler.timesteps:
                scaled = (
                    scheduler.scale_model_input(sample, step)
                    if hasattr(scheduler, "scale_model_input")
                    else sample
                )
                sample = scheduler.step(model(scaled, step).sample, step, sample, **more).prev_sample
        return sample

    both(program, within=1e-4)


def test_training(both):
    def program(device):
        model = unet(device)
        scheduler = diffusers.DDPMScheduler(num_train_timesteps=100)
        average = diffusers.training_utils.EMAModel(model.parameters(), decay=0.5)
        average.to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        losses = []
        for number in range(3):
            clean, noise = tiny.images(2, 2, 3, 16, 16, seed=number).to(device)
            steps = torch.tensor([3, 70], device=device)
            loss = torch.nn.functional.mse_loss(
                model(scheduler.add_noise(clean, noise, steps), steps).sample, noise
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.step(model.parameters())
            losses.append(loss.detach())
        found = {"losses": losses, "gradients": gradients(model)}
        average.copy_to(model.parameters())
        return {**found, "averaged": [parameter.detach() for parameter in model.parameters()]}

    both(program, within=1e-4)


def stable_diffusion(dtype: torch.dtype = torch.float32) -> diffusers.StableDiffusionPipeline:
    """A pipeline with all its parts, of a few thousand weights."""
    torch.manual_seed(0)
    model = diffusers.UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        cross_attention_dim=32,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )
    text = transformers.CLIPTextModel(
        tiny.config("CLIPText", **{**tiny.SMALL, "max_position_embeddings": 16})
    )
    words = tokenizer()
    words.model_max_length = 16
    pipe = diffusers.StableDiffusionPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=words,
        unet=model,
        scheduler=diffusers.DDIMScheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipe.set_progress_bar_config(disable=True)
    return pipe.to(dtype)


def drawn(pipe) -> np.ndarray:
    """Pixels between 0 and 1 of an image that the pipeline generates from noise of the CPU's generator."""
    generator = torch.Generator().manual_seed(3)
    options = {
        "num_inference_steps": 3,
        "guidance_scale": 3.0,
        "height": 16,
        "width": 16,
        "output_type": "np",
    }
    return pipe("w5 w7", generator=generator, **options).images


PLACEMENTS = {
    "to": lambda pipe: pipe.to("musa"),
    "attention slicing": lambda pipe: (pipe.to("musa"), pipe.enable_attention_slicing()),
    "vae slicing and tiling": lambda pipe: (
        pipe.to("musa"),
        pipe.vae.enable_slicing(),
        pipe.vae.enable_tiling(),
    ),
    "model offload": lambda pipe: pipe.enable_model_cpu_offload(device="musa"),
    "model offload, device found": lambda pipe: pipe.enable_model_cpu_offload(),
    "sequential offload": lambda pipe: pipe.enable_sequential_cpu_offload(device="musa"),
    "group offload": lambda pipe: pipe.enable_group_offload(
        onload_device=torch.device("musa"), offload_type="leaf_level", use_stream=True
    ),
    "channels last": lambda pipe: (pipe.to("musa"), pipe.unet.to(memory_format=torch.channels_last)),
}


@pytest.mark.parametrize("name", PLACEMENTS)
def test_pipeline(name, both):
    def program(device):
        pipe = stable_diffusion()
        if device == "musa":
            PLACEMENTS[name](pipe)
        return drawn(pipe)

    # Parameters are moved to the device inside the call.
    reason = "parameters are on the CPU before each call" if name == "group offload" else ""
    both(program, within=1e-4, cpu_parameters=reason)


def test_half_precision(both):
    def program(device):
        return drawn(stable_diffusion(torch.float16).to(device))

    both(program, within=2e-2)


@pytest.mark.parametrize("device_map", ["musa", "balanced"])
def test_device_map(device_map, both, tmp_path):
    stable_diffusion().save_pretrained(tmp_path / "saved")

    def program(device):
        where = {"device_map": device_map} if device == "musa" else {}
        pipe = diffusers.StableDiffusionPipeline.from_pretrained(
            tmp_path / "saved", safety_checker=None, **where
        )
        pipe.set_progress_bar_config(disable=True)
        return drawn(pipe)

    both(program, within=1e-4)


def test_latents_of_the_devices_generator():
    """A generator of the device gives the same image twice."""
    pipe = stable_diffusion().to("musa")

    def once():
        generator = torch.Generator("musa").manual_seed(1)
        options = {"num_inference_steps": 2, "height": 16, "width": 16, "output_type": "pt"}
        return pipe("w5", generator=generator, **options).images

    first, second = once(), once()
    assert first.device.type == "musa" and torch.equal(first, second)


def test_flux_transformer(both):
    def program(device):
        torch.manual_seed(0)
        model = diffusers.FluxTransformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=32,
            axes_dims_rope=(4, 4, 8),
        ).to(device)
        inputs = {
            "hidden_states": tiny.images(1, 16, 4),
            "encoder_hidden_states": tiny.images(1, 6, 32),
            "pooled_projections": tiny.images(1, 32),
            "timestep": torch.tensor([0.5]),
            "img_ids": torch.randint(0, 4, (16, 3), generator=torch.Generator().manual_seed(0)),
            "txt_ids": torch.zeros(6, 3),
        }
        output = model(**{name: value.to(device) for name, value in inputs.items()}).sample
        output.square().mean().backward()
        return {"output": output, "gradients": gradients(model)}

    both(program, within=1e-4)


def test_autoencoder(both):
    def program(device):
        vae = stable_diffusion().vae.to(device)
        picture = tiny.images(1, 3, 16, 16).to(device)
        output = vae.decode(vae.encode(picture).latent_dist.mode()).sample
        torch.nn.functional.mse_loss(output, picture).backward()
        return {"output": output, "gradients": gradients(vae)}

    both(program, within=1e-4)
