# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Libraries of the SDK that others need are found without LD_LIBRARY_PATH."""

import ctypes
import os
import subprocess

import pytest

from musa_runtime import link_names
from musa_runtime.sdk import Sdk

pytestmark = pytest.mark.once


def build(file, *needs):
    """A library in a file, linked with others by name, without their folders."""
    file.parent.mkdir(parents=True, exist_ok=True)
    options = [f"-Wl,--no-as-needed,-L{needed.parent},-l:{needed.name}" for needed in needs]
    command = [os.environ.get("CC", "cc"), "-shared", "-x", "c", "-", "-o", str(file)]
    command += [f"-Wl,-soname,{file.name}", *options]
    subprocess.run(command, input="", text=True, check=True)
    return file


@pytest.fixture
def sdk(tmp_path):
    home = tmp_path / "musa"
    driver = build(home / "lib" / "libmuprobedriver.so.5")
    build(home / "extras" / "MUPTI" / "lib64" / "libmuprobepti.so.5", driver)
    return Sdk(str(home), "MUSA_HOME", [])


def test_libraries_of_the_sdk_are_loaded_by_path_and_in_order(sdk, tmp_path):
    pti = tmp_path / "musa" / "extras" / "MUPTI" / "lib64" / "libmuprobepti.so.5"
    user = build(tmp_path / "site" / "libuser.so", pti)
    with pytest.raises(OSError, match=r"libmuprobepti\.so\.5: cannot open shared object file"):
        ctypes.CDLL(str(user))
    assert link_names.load(str(user), sdk, link_names.open_globally)._name == str(user)


def test_a_library_that_the_sdk_has_not_is_an_error_with_its_fix(sdk, tmp_path):
    absent = build(tmp_path / "other" / "libmuprobeabsent.so.4")
    user = build(tmp_path / "site" / "libuser_of_absent.so", absent)
    with pytest.raises(OSError, match=r"libmuprobeabsent\.so\.4") as caught:
        link_names.load(str(user), sdk, link_names.open_globally)
    error = link_names.explain(sdk, "musa-ops-mudnn", user.name, link_names.reason_of(caught.value))
    assert "libuser_of_absent.so needs libmuprobeabsent.so.4" in str(error)
    assert "built with an SDK of another major version" in str(error) and "musa-ops-mudnn" in error.command
    assert link_names.explain(sdk, "musa-ops-mudnn", user.name, "undefined symbol: nothing") is None


def test_a_link_of_the_needed_name_to_a_library_of_another_name_is_not_tried_for_ever(sdk, tmp_path):
    """The linker compares the name in the library, not that of the file."""
    needed = build(tmp_path / "other" / "libmuprobeplain.so")
    user = build(tmp_path / "site" / "libuser_of_plain.so", needed)
    versioned = build(tmp_path / "musa" / "lib" / "libmuprobeplain.so.5")
    (tmp_path / "musa" / "lib" / "libmuprobeplain.so").symlink_to(versioned.name)
    with pytest.raises(OSError, match=r"libmuprobeplain\.so: cannot open"):
        link_names.load(str(user), sdk, link_names.open_globally)
