# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""sentence-transformers on musa with device="musa"; without this argument, the package's list of devices
selects the CPU."""

from __future__ import annotations

import datasets
import pytest
import sentence_transformers
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.modules.pooling import Pooling

from tests.ecosystem import tiny
from tests.ecosystem.test_transformers_serving import tokenizer

SENTENCES = ["w5 w6 w7", "w8 w9", "w5 w6 w8 w9 w10 w11", "w40"]


@pytest.fixture
def saved(tmp_path):
    """A folder with a saved model: a small BERT with mean pooling."""
    configuration = tiny.config("Bert", **tiny.SMALL, **tiny.NO_DROPOUT)
    tiny.model("BertModel", configuration, "cpu").save_pretrained(tmp_path / "bert")
    tokenizer().save_pretrained(tmp_path / "bert")
    word = Transformer(str(tmp_path / "bert"))
    pooling = Pooling(32)
    SentenceTransformer(modules=[word, pooling], device="cpu").save_pretrained(str(tmp_path / "model"))
    return str(tmp_path / "model")


@pytest.mark.parametrize("options", [{}, {"normalize_embeddings": True}, {"batch_size": 1}], ids=str)
def test_embeddings(options, saved, both):
    def program(device):
        return SentenceTransformer(saved, device=device).encode(SENTENCES, convert_to_tensor=True, **options)

    both(program)


def test_the_device_is_found_without_an_argument(saved, both):
    def program(device):
        where = {} if device == "musa" else {"device": device}
        return SentenceTransformer(saved, **where).encode(SENTENCES, convert_to_tensor=True)

    both(program)


def test_half_precision(saved, both):
    def program(device):
        model = SentenceTransformer(saved, device=device, model_kwargs={"dtype": torch.bfloat16})
        return model.encode(SENTENCES, convert_to_tensor=True)

    both(program, within=2e-2)


def test_similarities_and_search(saved, both):
    def program(device):
        model = SentenceTransformer(saved, device=device)
        found = model.encode(SENTENCES, convert_to_tensor=True)
        hits = sentence_transformers.util.semantic_search(found, found, top_k=2)
        return [
            model.similarity(found, found),
            [[(hit["corpus_id"], hit["score"]) for hit in row] for row in hits],
        ]

    both(program)


def test_training(saved, both, tmp_path):
    rows = datasets.Dataset.from_dict({"anchor": SENTENCES, "positive": SENTENCES[::-1]})

    def program(device):
        model = SentenceTransformer(saved, device=device)
        arguments = sentence_transformers.SentenceTransformerTrainingArguments(
            output_dir=str(tmp_path / device),
            max_steps=2,
            per_device_train_batch_size=2,
            report_to=[],
            seed=0,
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
            use_cpu=device == "cpu",
            dataloader_pin_memory=False,
        )
        trainer = sentence_transformers.SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=rows, loss=losses.MultipleNegativesRankingLoss(model)
        )
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    both(program, within=1e-4)


def test_cross_encoder(both, tmp_path):
    configuration = tiny.config("Bert", **tiny.SMALL, **tiny.NO_DROPOUT, num_labels=1)
    tiny.model("BertForSequenceClassification", configuration, "cpu").save_pretrained(tmp_path / "cross")
    words: transformers.PreTrainedTokenizerFast = tokenizer()
    words.model_max_length = 32
    words.save_pretrained(tmp_path / "cross")

    def program(device):
        model = CrossEncoder(str(tmp_path / "cross"), device=device)
        return model.predict(
            [(SENTENCES[0], SENTENCES[1]), (SENTENCES[2], SENTENCES[3])], convert_to_tensor=True
        )

    both(program)
