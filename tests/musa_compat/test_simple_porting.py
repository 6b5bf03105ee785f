# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""SimplePorting writes a folder next to the input, with the caller's replacements and musa-port's rules."""

import warnings
from pathlib import Path

import pytest

from musa_compat import simple_porting
from musa_compat.simple_porting import SimplePorting
from musa_port.files import InputError

pytestmark = pytest.mark.once


def ported(folder: Path, **arguments) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        SimplePorting(cuda_dir_path=str(folder), **arguments).run()
    return folder.with_name(f"{folder.name}_musa")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "cuda"
    (folder / "inner").mkdir(parents=True)
    (folder / "a_cuda.cu").write_text(
        '#include "inner/b_cuda.cuh"\n#include <cuda_runtime.h>\n#include <ATen/cuda/CUDAContext.h>\n'
        "void f(cudaStream_t s) { TORCH_CHECK(x.device().is_cuda()); } // cudaStream_t\n"
    )
    (folder / "inner" / "b_cuda.cuh").write_text('#include "../a.h"\nusing S = cudaStream_t;\n')
    (folder / "a.h").write_text("cudaError_t g();\n")
    (folder / "weights.bin").write_bytes(b"\xff\x00cuda")
    return folder


def test_files_keep_their_names_and_includes_follow(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    target = ported(folder, mapping_rule={"x.device().is_cuda()": "true"})
    assert {str(path.relative_to(target)) for path in target.rglob("*.*")} == {
        "a.h",
        "a_cuda.mu",
        "inner/b_cuda.muh",
        "weights.bin",
    }
    assert (target / "a_cuda.mu").read_text() == (
        '#include "inner/b_cuda.muh"\n#include <musa_runtime.h>\n#include <ATen/musa/MUSAContext.h>\n'
        "void f(musaStream_t s) { TORCH_CHECK(true); } // cudaStream_t\n"
    )
    assert (target / "inner" / "b_cuda.muh").read_text() == '#include "../a.h"\nusing S = musaStream_t;\n'
    assert (target / "a.h").read_text() == "musaError_t g();\n"
    assert (target / "weights.bin").read_bytes() == b"\xff\x00cuda"
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before


def test_the_longer_of_two_replacements_at_one_place_applies(folder):
    (folder / "a.h").write_text("one/x one/ cudaError_t\n")
    rules = {"one/": "two/", "one/x": "one/y", "two/": "never"}
    assert (ported(folder, mapping_rule=rules) / "a.h").read_text() == "one/y two/ musaError_t\n"


def test_the_default_rules_can_be_left_out(folder):
    text = (ported(folder, mapping_rule={"g()": "h()"}, drop_default_mapping=True) / "a.h").read_text()
    assert text == "cudaError_t h();\n"


def test_folders_can_be_left_out_and_the_result_is_written_again(folder):
    target = ported(folder)
    (target / "stale.mu").touch()
    ported(folder, ignore_dir_paths=[str(folder / "inner")])
    assert not (target / "stale.mu").exists() and not (target / "inner").exists()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*nothing(.|\n)*Fix:"):
        ported(tmp_path / "nothing")


def test_two_inputs_of_one_result_are_refused_and_nothing_is_written(folder):
    (folder / "a_cuda.mu").touch()
    with pytest.raises(InputError, match=r"a_cuda\.mu: .*a_cuda\.cu, .*a_cuda\.mu(.|\n)*Fix:"):
        ported(folder)
    assert not folder.with_name("cuda_musa").exists()


def test_a_folder_can_be_ported_in_place_by_replaced_steps_and_tables(folder, monkeypatch):
    """As torchada ports: tables keep the names, one step filters the replacements, another writes files."""
    monkeypatch.setattr(simple_porting, "EXT_REPLACED_MAPPING", {"cu": "cu", "cuh": "cuh"})
    monkeypatch.setattr(simple_porting, "_MAPPING_RULE", {"cudaStream_t": "otherStream_t", "using": "never"})

    class Porting(SimplePorting):
        def load_replaced_mapping(self):
            super().load_replaced_mapping()
            self.mapping_rule = [(text, to) for text, to in self.mapping_rule if to != "never"]

        def modify_file(self, cuda_filepath, musa_filepath):
            steps.append(cuda_filepath)
            super().modify_file(cuda_filepath, musa_filepath)

    steps: list[str] = []
    porting = Porting(str(folder))
    porting.cuda_dir_path = porting.musa_dir_path = str(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        porting.run()
    assert len(steps) == 4
    assert (folder / "inner" / "b_cuda.cuh").read_text() == '#include "../a.h"\nusing S = otherStream_t;\n'
    assert (folder / "weights.bin").read_bytes() == b"\xff\x00cuda" and not (folder / "a_cuda.mu").exists()


def test_folders_of_the_extension_builder_take_the_argument_of_torch():
    from musa_compat import musa_extension

    assert musa_extension.include_paths(musa=True) == musa_extension.include_paths()
    assert musa_extension.library_paths(musa=True) == musa_extension.library_paths()
