# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""DataLoader with pinned memory and worker processes, before and after the first use of the device."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.harness.subprocesses import run_code, run_python


class _Samples(Dataset):
    """Dictionaries with several kinds of values, as in real data sets."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return {"x": torch.full((3,), float(index)), "label": index, "name": str(index)}


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_arrive_pinned_and_in_order(musa, workers):
    loader = DataLoader(_Samples(), batch_size=4, pin_memory=True, num_workers=workers)
    seen = []
    for batch in loader:
        assert batch["x"].is_pinned()
        assert batch["label"].is_pinned()
        moved = batch["x"].to("musa", non_blocking=True)
        seen += (moved.sum(1) / 3).cpu().tolist()
    assert seen == list(range(20))


def test_persistent_workers_and_two_epochs(musa):
    loader = DataLoader(
        TensorDataset(torch.arange(12.0)),
        batch_size=3,
        pin_memory=True,
        num_workers=1,
        persistent_workers=True,
    )
    for _ in range(2):
        total = sum(batch.to("musa", non_blocking=True).sum() for (batch,) in loader)
        assert total.item() == 66


def test_a_loader_whose_generator_is_seeded_shuffles_equally(musa):
    orders = []
    for _ in range(2):
        loader = DataLoader(
            TensorDataset(torch.arange(30)),
            shuffle=True,
            pin_memory=True,
            generator=torch.Generator().manual_seed(3),
        )
        orders.append([int(batch) for (batch,) in loader])
    assert orders[0] == orders[1] != list(range(30))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_can_be_the_first_use_of_the_device(musa, workers):
    run_code(
        f"""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.arange(8.0))
        batches = [batch for (batch,) in DataLoader(data, 2, pin_memory=True, num_workers={workers})]
        assert all(batch.is_pinned() for batch in batches)
        assert torch.cat([batch.to("musa") for batch in batches]).tolist() == list(range(8))
        """
    )


def test_a_worker_that_uses_the_device_after_a_fork_gets_an_error(musa):
    class Touching(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return torch.ones(1, device="musa").item()

    loader = DataLoader(Touching(), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match=r"(?i)fork"):
        next(iter(loader))
    assert torch.ones(1, device="musa").item() == 1


_SPAWNING = """
import torch
from torch import multiprocessing


def work(queue):
    queue.put(float((torch.ones(4, device="musa") * 2).sum()))


if __name__ == "__main__":
    torch.ones(1, device="musa")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=120))
    process.join()
"""


def test_processes_that_are_spawned_may_use_the_device(musa, tmp_path):
    # A spawned process imports the script, so the script must be a file.
    script = tmp_path / "spawning.py"
    script.write_text(_SPAWNING)
    done = run_python(str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["8.0"]
