# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa's devices, in torch.cuda's spelling: they are selected and described, and bad ones are
refused."""

import pickle

import pytest
import torch
from packaging.version import Version

import torch_musa
from musa_runtime.errors import InvalidDeviceError
from tests.harness.subprocesses import run_code

# Names of a device module that torch itself, its libraries and users need.
NEEDED_NAMES = """
    is_available device_count current_device set_device device device_of is_initialized init _initialized
    _lazy_init _is_in_bad_fork manual_seed manual_seed_all seed seed_all initial_seed get_rng_state
    get_rng_state_all set_rng_state set_rng_state_all default_generators _get_generator
    get_amp_supported_dtype is_bf16_supported synchronize current_stream default_stream stream set_stream
    Stream Event ExternalStream StreamContext get_device_properties get_device_name get_device_capability
    can_device_access_peer get_arch_list memory_allocated max_memory_allocated memory_reserved
    max_memory_reserved memory_cached max_memory_cached memory_stats memory_stats_as_nested_dict
    memory_summary empty_cache mem_get_info reset_peak_memory_stats reset_accumulated_memory_stats
    reset_max_memory_allocated reset_max_memory_cached set_per_process_memory_fraction
    get_per_process_memory_fraction caching_allocator_alloc caching_allocator_delete random memory streams
    ops OutOfMemoryError AcceleratorError fork_rng get_stream_from_external _set_stream_by_id
    get_allocator_backend
"""


@pytest.mark.parametrize("name", NEEDED_NAMES.split())
def test_torch_musa_has(musa, name):
    assert hasattr(musa, name)


def test_names_that_are_public_exist_and_are_listed_once(musa):
    assert len(set(musa.__all__)) == len(musa.__all__)
    assert [name for name in musa.__all__ if not hasattr(musa, name)] == []


def test_devices_are_exchanged_as_torch_s_compiler_does(musa):
    assert musa._exchange_device(-1) == musa._maybe_exchange_device(-1) == -1
    assert musa._exchange_device(0) == musa._maybe_exchange_device(0) == musa.current_device() == 0
    with pytest.raises(InvalidDeviceError):
        musa._exchange_device(musa.device_count())


def test_the_version_is_that_of_the_vendor_release_whose_behaviour_it_has(musa):
    # torchada switches workarounds on below 2.11.0.post2 and 2.13.0.
    version = Version(musa.__version__)
    assert Version("2.13.0") <= version and version.local == torch_musa.__version__


@pytest.mark.parametrize("device", [None, 0, "musa", "musa:0", torch.device("cpu"), -1])
def test_every_way_to_name_the_current_device(musa, device):
    if device == torch.device("cpu"):
        with pytest.raises(InvalidDeviceError, match="expected a musa device, but got 'cpu'"):
            musa.get_device_name(device)
    else:
        assert musa.get_device_name(device) == musa.get_device_name(torch.device("musa", 0))


@pytest.mark.parametrize("device", ["cuda:0", "no device", 1.5, True, [0], torch.device("meta")])
def test_a_value_that_is_no_musa_device_is_refused(musa, device):
    with pytest.raises(InvalidDeviceError):
        musa.get_device_properties(device)
    with pytest.raises(ValueError):
        musa.set_device(device)


USES = {
    "set_device": lambda musa, index: musa.set_device(index),
    "synchronize": lambda musa, index: musa.synchronize(index),
    "get_device_properties": lambda musa, index: musa.get_device_properties(index),
    "current_stream": lambda musa, index: musa.current_stream(index),
    "Stream": lambda musa, index: musa.Stream(index),
    "mem_get_info": lambda musa, index: musa.mem_get_info(index),
    "memory_stats": lambda musa, index: musa.memory_stats(index),
    "get_rng_state": lambda musa, index: musa.get_rng_state(index),
    "device": lambda musa, index: musa.device(index).__enter__(),
}


@pytest.mark.parametrize("use", USES)
def test_an_index_out_of_range_names_the_count_and_the_variable(musa, use):
    musa.init()
    with pytest.raises(InvalidDeviceError) as told:
        USES[use](musa, 99)
    assert f"index 99 is out of range: {musa.device_count()} device(s) visible" in str(told.value)
    assert "MUSA_VISIBLE_DEVICES" in str(told.value)
    assert torch.ones(2, device="musa").sum() == 2  # the next operation works


def test_tensor_factories_refuse_an_index_out_of_range(musa):
    with pytest.raises((RuntimeError, ValueError), match="99"):
        torch.ones(2, device="musa:99")
    assert torch.ones(2, device="musa").sum() == 2


def test_the_device_context_selects_and_restores(two_devices):
    musa = two_devices
    assert musa.current_device() == 0
    with musa.device(1):
        assert musa.current_device() == 1
        assert torch.ones(1, device="musa").device.index == 1
        with musa.device("musa:0"):
            assert musa.current_device() == 0
        with musa.device(None), musa.device(-1):
            assert musa.current_device() == 1
    assert musa.current_device() == 0
    with pytest.raises(KeyError), musa.device(1):
        raise KeyError
    assert musa.current_device() == 0


def test_device_of_follows_tensors_and_storages(two_devices):
    musa = two_devices
    tensor = torch.ones(1, device="musa:1")
    for holder in (tensor, tensor.untyped_storage()):
        with musa.device_of(holder):
            assert musa.current_device() == 1
    with musa.device_of(torch.ones(1)):
        assert musa.current_device() == 0


def test_set_device_holds_for_the_thread_and_negative_changes_nothing(two_devices):
    musa = two_devices
    try:
        musa.set_device(1)
        musa.set_device(-1)
        assert musa.current_device() == 1
    finally:
        musa.set_device(0)


def test_properties_are_plausible(musa):
    properties = musa.get_device_properties()
    assert properties.name and properties.total_memory > 0 and properties.multi_processor_count > 0
    assert musa.get_device_capability() == (properties.major, properties.minor)
    assert f"mp_{properties.major}{properties.minor}" in musa.get_arch_list()
    assert properties.warp_size in (32, 128)


def test_peers(two_devices):
    assert two_devices.can_device_access_peer(0, 1) in (True, False)
    with pytest.raises(InvalidDeviceError):
        two_devices.can_device_access_peer(0, 99)


def test_dtypes_for_autocast(musa):
    assert musa.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]
    assert musa.is_bf16_supported()


def test_tensor_and_module_methods(musa):
    tensor = torch.ones(2).musa()
    assert tensor.is_musa and not torch.ones(2).is_musa and tensor.device == torch.device("musa:0")
    assert next(torch.nn.Linear(1, 1).musa().parameters()).is_musa
    assert tensor.untyped_storage().is_musa


def test_tensors_survive_pickle_and_torch_load(musa, tmp_path):
    tensor = torch.arange(5.0, device="musa")
    copied = pickle.loads(pickle.dumps(tensor))
    assert copied.is_musa and torch.equal(copied.cpu(), tensor.cpu())
    torch.save({"x": tensor}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["x"].is_musa
    assert torch.load(tmp_path / "x.pt", map_location="cpu")["x"].device.type == "cpu"


def test_visible_devices_hide_and_renumber():
    code = "import torch; print(torch.musa.device_count(), torch.musa.is_available())"
    assert run_code(code, MUSA_VISIBLE_DEVICES="1", MUSA_EMULATOR_DEVICES="3") == "1 True\n"
    assert run_code(code, MUSA_VISIBLE_DEVICES="", MUSA_EMULATOR_DEVICES="3") == "0 False\n"


def test_with_every_device_hidden_the_error_names_the_variable():
    code = """
    import torch
    for use in (torch.musa.init, lambda: torch.ones(2, device="musa"), lambda: torch.musa.get_device_name(0)):
        try:
            use()
        except RuntimeError as error:
            print("MUSA_VISIBLE_DEVICES" in str(error))
    print(torch.ones(2).sum().item())
    """
    assert run_code(code, MUSA_VISIBLE_DEVICES="").splitlines() == ["True", "True", "True", "2.0"]
