# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""docs/conftest.py, by which `pytest docs` runs the code blocks of pages, refuses blocks that do not run."""

from __future__ import annotations

import importlib.util

import pytest

from workspace import ROOT

pytestmark = pytest.mark.once

spec = importlib.util.spec_from_file_location("code_blocks_of_pages", ROOT / "docs" / "conftest.py")
blocks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(blocks)


def problem(folder, text, **options):
    (folder / "a.md").write_text(text)
    return blocks.run_page(folder / "a.md", folder / "files", **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n```python\nx = 1\nx.y\n```", 'a.md", line 4'),
        ("```python\nraise SystemExit(0)\n```", "a.md:1: the block fails"),
        ("```bash\nfalse | true\n```", "the block ends with 1"),
        (
            "```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```",
            "the page says '2\\n', the program prints '1\\n'",
        ),
        ("<!-- output -->\n```text\n2\n```", "no block before this output runs"),
        ("```python\nimport os\nos._exit(7)\n```", "its process ended with status 7"),
        ("```python\nimport time\ntime.sleep(60)\n```", "its blocks take more than 2 s"),
    ],
)
def test_a_block_that_does_not_run_is_refused(tmp_path, text, message):
    assert message in problem(tmp_path, text, limit=2)


def test_marked_blocks_are_files_outputs_or_skipped(tmp_path):
    text = "<!-- file: a/b.py -->\n```python\nprint(1 / 1)\n```\n<!-- in: a -->\n```bash\npython3 b.py\n```\n"
    text += "<!-- output -->\n```text\n1.0\n```\n```python\nx = 2\n```\n"
    text += '<!-- skip: next "needs a GPU" -->\n```python\n1 / 0\n```\n```python\nprint(x)\n```\n'
    text += "<!-- output -->\n```text\n2\n```\n```cpp\nint x\n```\n"
    assert problem(tmp_path, text) == ""
    assert (tmp_path / "files" / "a" / "b.py").read_text() == "print(1 / 1)\n"
