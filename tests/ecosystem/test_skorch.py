# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""skorch: estimators of scikit-learn whose network is on musa."""

from __future__ import annotations

import numpy as np
import pytest
import skorch
import torch
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import EarlyStopping, LRScheduler

from tests.ecosystem.tiny import images


def rows() -> tuple[np.ndarray, np.ndarray]:
    x = images(40, 6).numpy()
    return x, (x[:, 0] > 0).astype(np.int64)


class Network(torch.nn.Module):
    def __init__(self, outputs: int = 2):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs))

    def forward(self, x):
        return self.layers(x)


def classifier(device: str, **options) -> skorch.NeuralNetClassifier:
    torch.manual_seed(0)
    defaults = {
        "criterion": torch.nn.CrossEntropyLoss,
        "max_epochs": 3,
        "lr": 0.1,
        "verbose": 0,
        "batch_size": 16,
    }
    return skorch.NeuralNetClassifier(Network, device=device, **{**defaults, **options})


VARIANTS = {
    "plain": {},
    "scheduler": {"callbacks": [LRScheduler("StepLR", step_size=1)]},
    "early stopping": {"callbacks": [EarlyStopping(patience=2)]},
    "adam": {"optimizer": torch.optim.Adam, "lr": 0.01},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_classifier(variant, both):
    def program(device):
        x, y = rows()
        model = classifier(device, **VARIANTS[variant]).fit(x, y)
        return [
            model.history[:, "train_loss"],
            model.predict_proba(x),
            dict(model.module_.named_parameters()),
        ]

    both(program, within=1e-4)


def test_regressor(both):
    def program(device):
        x, _ = rows()
        torch.manual_seed(0)
        model = skorch.NeuralNetRegressor(Network, module__outputs=1, device=device, max_epochs=3, verbose=0)
        model.fit(x, x[:, :1])
        return [model.history[:, "train_loss"], model.predict(x)]

    both(program, within=1e-4)


def test_pipelines_and_cross_validation(both):
    def program(device):
        x, y = rows()
        torch.manual_seed(0)
        chain = make_pipeline(StandardScaler(), classifier(device, train_split=None))
        return cross_val_predict(chain, x.astype(np.float32), y, cv=2)

    both(program)


def test_parameters_are_saved_and_loaded(both, tmp_path):
    def program(device):
        x, y = rows()
        model = classifier(device).fit(x, y)
        model.save_params(f_params=str(tmp_path / f"{device}.pt"))
        again = classifier(device).initialize()
        again.load_params(f_params=str(tmp_path / f"{device}.pt"))
        assert np.array_equal(model.predict_proba(x), again.predict_proba(x))
        return again.predict_proba(x)

    both(program, within=1e-4)
