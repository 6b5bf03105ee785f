# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchmetrics: metrics on musa give the CPU's values, and keep their state on the device."""

from __future__ import annotations

import pytest
import torch
import torchmetrics
from torchmetrics import classification, clustering, functional, image, regression, retrieval, text

CLASSES = 5


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def classes():
    return torch.rand(40, CLASSES, generator=generator()).softmax(-1), torch.arange(40) % CLASSES


def binary():
    return torch.rand(40, generator=generator()), torch.arange(40) % 2


def values():
    numbers = torch.rand(2, 40, generator=generator()) + 0.5
    return numbers[0], numbers[1]


def pictures():
    numbers = torch.rand(2, 2, 3, 48, 48, generator=generator())
    return numbers[0], numbers[1]


def found():
    return torch.rand(40, generator=generator()), torch.arange(40) % 2, torch.arange(40) // 8


def labels():
    return torch.arange(40) % 4, torch.arange(40) % 3


def words():
    return ["the cat sat on the mat", "a dog"], [["the cat is on the mat"], ["the dog"]]


MANY = {"num_classes": CLASSES}
METRICS = {
    "accuracy": (lambda: classification.MulticlassAccuracy(**MANY), classes),
    "precision": (lambda: classification.MulticlassPrecision(**MANY), classes),
    "recall": (lambda: classification.MulticlassRecall(**MANY), classes),
    "f1": (lambda: classification.MulticlassF1Score(**MANY), classes),
    "auroc": (lambda: classification.MulticlassAUROC(**MANY), classes),
    "average precision": (lambda: classification.MulticlassAveragePrecision(**MANY), classes),
    "confusion matrix": (lambda: classification.MulticlassConfusionMatrix(**MANY), classes),
    "cohen kappa": (lambda: classification.MulticlassCohenKappa(**MANY), classes),
    "matthews": (lambda: classification.MulticlassMatthewsCorrCoef(**MANY), classes),
    "calibration error": (lambda: classification.MulticlassCalibrationError(**MANY), classes),
    "binary auroc with thresholds": (lambda: classification.BinaryAUROC(thresholds=10), binary),
    "binary roc": (lambda: classification.BinaryROC(), binary),
    "binary precision-recall curve": (lambda: classification.BinaryPrecisionRecallCurve(), binary),
    "hinge loss": (lambda: classification.MulticlassHingeLoss(**MANY), classes),
    "mean squared error": (lambda: regression.MeanSquaredError(), values),
    "mean absolute error": (lambda: regression.MeanAbsoluteError(), values),
    "r2": (lambda: regression.R2Score(), values),
    "pearson": (lambda: regression.PearsonCorrCoef(), values),
    "spearman": (lambda: regression.SpearmanCorrCoef(), values),
    "kendall": (lambda: regression.KendallRankCorrCoef(), values),
    "cosine similarity": (lambda: regression.CosineSimilarity(), lambda: [x[0, 0] for x in pictures()]),
    "kl divergence": (lambda: regression.KLDivergence(), lambda: (classes()[0], classes()[0].flip(0))),
    "psnr": (lambda: image.PeakSignalNoiseRatio(data_range=1.0), pictures),
    "ssim": (lambda: image.StructuralSimilarityIndexMeasure(data_range=1.0), pictures),
    "total variation": (lambda: image.TotalVariation(), lambda: pictures()[:1]),
    "spectral angle": (lambda: image.SpectralAngleMapper(), pictures),
    "retrieval map": (lambda: retrieval.RetrievalMAP(), found),
    "retrieval ndcg": (lambda: retrieval.RetrievalNormalizedDCG(), found),
    "mutual information": (lambda: clustering.MutualInfoScore(), labels),
    "adjusted rand": (lambda: clustering.AdjustedRandScore(), labels),
    "perplexity": (lambda: text.Perplexity(), lambda: (classes()[0][None], classes()[1][None])),
    "mean of values": (lambda: torchmetrics.MeanMetric(), lambda: values()[:1]),
    "running mean": (lambda: torchmetrics.RunningMean(window=2), lambda: values()[:1]),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics(name, both):
    make, data = METRICS[name]

    def program(device):
        metric = make().to(device)
        for _ in range(2):
            metric.update(*(tensor.to(device) for tensor in data()))
        assert metric.device.type == device
        return metric.compute()

    both(program)


# They count strings on the host; the sums are tensors on the device.
@pytest.mark.parametrize("name", ["BLEUScore", "CharErrorRate", "WordErrorRate"])
def test_metrics_of_text(name, both):
    def program(device):
        metric = getattr(text, name)().to(device)
        found, expected = words()
        metric.update(found, expected if name == "BLEUScore" else [each[0] for each in expected])
        return metric.compute()

    both(program)


def test_a_collection_moves_as_a_module(both):
    def program(device):
        metrics = torchmetrics.MetricCollection(
            [classification.MulticlassAccuracy(**MANY), classification.MulticlassF1Score(**MANY)]
        )
        metrics = metrics.to(device)
        first = metrics(*(tensor.to(device) for tensor in classes()))
        metrics.reset()
        metrics.update(*(tensor.flip(0).to(device) for tensor in classes()))
        return [first, metrics.compute()]

    both(program)


def test_functions(both):
    def program(device):
        a, b = (tensor.to(device) for tensor in values())
        return [functional.pearson_corrcoef(a, b), functional.explained_variance(a, b)]

    both(program)
