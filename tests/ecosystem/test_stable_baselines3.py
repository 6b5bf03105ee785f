# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""stable-baselines3 with device="musa"; its "auto" selects the CPU."""

from __future__ import annotations

import pytest
import stable_baselines3
import torch

STEPS = {"PPO": {"n_steps": 32, "batch_size": 16, "n_epochs": 1}, "A2C": {"n_steps": 16}}
STEPS |= {
    "DQN": {"learning_starts": 16, "train_freq": 8},
    "SAC": {"learning_starts": 16},
    "TD3": {"learning_starts": 16},
}
WORLDS = {
    "PPO": "CartPole-v1",
    "A2C": "CartPole-v1",
    "DQN": "CartPole-v1",
    "SAC": "Pendulum-v1",
    "TD3": "Pendulum-v1",
}


def learned(name: str, device: str):
    made = getattr(stable_baselines3, name)(
        "MlpPolicy", WORLDS[name], device=device, seed=0, policy_kwargs={"net_arch": [16]}, **STEPS[name]
    )
    return made.learn(32)


@pytest.mark.parametrize("name", WORLDS)
def test_learning(name, both, tmp_path):
    """Actions are drawn on the device, so only the deterministic actions of a loaded policy are compared."""
    learned(name, "cpu").save(tmp_path / "cpu")

    def program(device):
        if device == "musa":
            model = learned(name, device)
            assert model.device.type == "musa" and model.num_timesteps >= 32
            assert {parameter.device.type for parameter in model.policy.parameters()} == {"musa"}
        model = getattr(stable_baselines3, name).load(tmp_path / "cpu", device=device)
        world = getattr(stable_baselines3, name)("MlpPolicy", WORLDS[name], device="cpu", seed=0).get_env()
        world.seed(0)
        actions, _ = model.predict(world.reset(), deterministic=True)
        observation = torch.as_tensor(world.reset(), device=device)
        return [
            actions,
            *([model.policy.predict_values(observation).detach()] if name in ("PPO", "A2C") else []),
        ]

    both(program, within=1e-4)


def test_the_device_is_found_without_a_name(both):
    def program(device):
        model = stable_baselines3.PPO(
            "MlpPolicy", "CartPole-v1", device="auto" if device == "musa" else device, seed=0
        )
        observation = torch.zeros(1, 4, device=model.device)
        return model.policy.predict_values(observation).detach()

    both(program)
