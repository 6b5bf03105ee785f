# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A seed gives the same numbers as torch's CUDA kernels on a device with as many multiprocessors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.musa_ops_ported import philox

SEED = 0x1234_5678_9ABC
# One block, several blocks, and more elements than the device has threads.
COUNTS = [1, 5, 1000, 400_003]


@pytest.fixture
def geometry(musa, ported):
    properties = torch.musa.get_device_properties(0)
    return properties.multi_processor_count, properties.max_threads_per_multi_processor


@pytest.fixture(autouse=True)
def seeded(musa, ported):
    torch.musa.manual_seed(SEED)


def drawn(count, geometry, offset=0, at_once=4):
    rows = philox.elements(SEED, offset, count, *geometry, at_once)
    return rows[:, :4], rows[:, 4].astype(int)


@pytest.mark.parametrize("count", COUNTS)
def test_rand(count, geometry):
    numbers, which = drawn(count, geometry)
    expected = philox.uniform32(np.take_along_axis(numbers, which[:, None], 1)[:, 0])
    expected = np.where(expected == 1, np.float32(0), expected)  # the distribution is [0, 1)
    np.testing.assert_array_equal(torch.rand(count, device="musa").cpu().numpy(), expected)


@pytest.mark.parametrize("count", COUNTS)
def test_rand_in_double(count, geometry):
    numbers, which = drawn(count, geometry, at_once=2)
    first = philox.uniform53(numbers[:, 0], numbers[:, 1])
    second = philox.uniform53(numbers[:, 2], numbers[:, 3])
    expected = np.where(which == 0, first, second)
    np.testing.assert_array_equal(
        torch.rand(count, device="musa", dtype=torch.float64).cpu().numpy(), expected
    )


@pytest.mark.parametrize("count", COUNTS)
def test_randn(count, geometry):
    numbers, which = drawn(count, geometry)
    pair = which // 2 * 2
    radius_bits = np.take_along_axis(numbers, pair[:, None], 1)[:, 0]
    angle_bits = np.take_along_axis(numbers, pair[:, None] + 1, 1)[:, 0]
    radius = np.sqrt(-2 * np.log(philox.uniform32(radius_bits).astype(np.float64)))
    angle = angle_bits.astype(np.float64) * (2 * math.pi * 2.0**-32) + math.pi * 2.0**-32
    expected = radius * np.where(which % 2 == 0, np.sin(angle), np.cos(angle))
    got = torch.randn(count, device="musa").cpu().numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("count", COUNTS)
def test_bernoulli(count, geometry):
    numbers, which = drawn(count, geometry)
    uniform = philox.uniform32(np.take_along_axis(numbers, which[:, None], 1)[:, 0])
    got = torch.empty(count, device="musa").bernoulli_(0.3).cpu().numpy()
    np.testing.assert_array_equal(got, (uniform < np.float32(0.3)).astype(np.float32))


def test_randint(geometry):
    count = 1000
    numbers, which = drawn(count, geometry)
    expected = np.take_along_axis(numbers, which[:, None], 1)[:, 0].astype(np.int64) % 10 - 3
    np.testing.assert_array_equal(torch.randint(-3, 7, (count,), device="musa").cpu().numpy(), expected)


@pytest.mark.parametrize("count", [7, 1001, 400_003])
def test_dropout_of_unaligned_sizes(count, geometry):
    numbers, which = drawn(count, geometry)
    uniform = philox.uniform32(np.take_along_axis(numbers, which[:, None], 1)[:, 0])
    got = torch.nn.functional.dropout(torch.ones(count, device="musa"), 0.25).cpu().numpy()
    np.testing.assert_allclose(got, (uniform < np.float32(0.75)) / 0.75, rtol=1e-6)


@pytest.mark.parametrize("count", [8, 4096])
def test_dropout_is_vectorized_when_sizes_allow(count, geometry):
    # Thread t has elements 4t to 4t + 3.
    numbers = philox.philox(SEED, np.arange(count // 4), 0)
    uniform = philox.uniform32(numbers.reshape(-1).astype(np.uint64))
    got = torch.nn.functional.dropout(torch.ones(count, device="musa"), 0.25).cpu().numpy()
    np.testing.assert_allclose(got, (uniform < np.float32(0.75)) / 0.75, rtol=1e-6)


@pytest.mark.parametrize("count", [2, 100, 5000])
def test_randperm(count, geometry):
    bits = math.ceil(math.log2(count - (6 * count * count + 1) / (math.log(0.9) * 12)))
    numbers, which = drawn(count, geometry, at_once=2)
    # Keys span the range of int32. A range above 2^28 draws 64 bits per key, high half first.
    first = (numbers[:, 0].astype(np.uint64) << np.uint64(32)) | numbers[:, 1]
    second = (numbers[:, 2].astype(np.uint64) << np.uint64(32)) | numbers[:, 3]
    keys = np.where(which == 0, first, second) % np.uint64(2**32 - 1)
    keys = (keys.astype(np.int64) - 2**31) & ((1 << bits) - 1)
    got = torch.randperm(count, device="musa").cpu().numpy()
    order = np.argsort(keys, kind="stable")
    assert sorted(got.tolist()) == list(range(count))
    np.testing.assert_array_equal(keys[got], keys[order])
    unique = np.concatenate([[True], np.diff(keys[order]) != 0]) & np.concatenate(
        [np.diff(keys[order]) != 0, [True]]
    )
    np.testing.assert_array_equal(got[unique], order[unique])


def test_the_generator_advances_as_cudas(geometry):
    state = torch.musa.get_rng_state()
    torch.rand(400_003, device="musa")
    after = torch.musa.get_rng_state()
    moved = int(after[8:].view(torch.int64)) - int(state[8:].view(torch.int64))
    assert moved == philox.calls_offset(400_003, *geometry)
    numbers, which = drawn(10, geometry, offset=moved)
    expected = philox.uniform32(np.take_along_axis(numbers, which[:, None], 1)[:, 0])
    np.testing.assert_array_equal(torch.rand(10, device="musa").cpu().numpy(), expected)


def test_another_seed_or_thread_gives_other_numbers(geometry):
    numbers = philox.philox(SEED, np.arange(1000), 0)
    assert len(np.unique(numbers)) > 3990
    assert not np.array_equal(numbers, philox.philox(SEED + 1, np.arange(1000), 0))


# The known answers of the paper's reference implementation, for all bits zero and all bits one.
def test_the_reference_is_philox():
    assert [hex(x) for x in philox.philox(0, np.zeros(1, np.uint64), 0)[0]] == [
        "0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8",
    ]  # fmt: skip
    ones = philox.philox(2**64 - 1, np.full(1, 2**64 - 1, np.uint64), 2**64 - 1)[0]
    assert [hex(x) for x in ones] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]
