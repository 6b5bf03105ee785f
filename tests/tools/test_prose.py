# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rule that prose is plain English: what it finds, and where; what it leaves alone."""

from pathlib import Path

import pytest

from workspace import prose, tree_lint

pytestmark = pytest.mark.once

# One sentence at least for each pattern, in the order of the table.
BAD = (
    "An interrupted load starts anew.",
    "There is no memory at hand.",
    "It is copied from pinned memory, so that nobody waits.",
    "Freed by whoever comes last.",
    "The thread is left to who frees it.",
    "Freeing it reaches into the books of the allocator.",
    "The watchdog is told of the failure.",
    "The third argument tells numbers from addresses.",
    "The workspace is lent by the caller.",
    "The receiver lets go of the storage.",
    "After a second the call is given up.",
    "Copies that which changed.",
    "It bends to the dtype of tensors with dimensions.",
    "The place where the maximum stands.",
    "The tensor lies in device memory.",
    "The allocator knows the stream.",
    "The memory that is asked for.",
    "The kernel wants a workspace.",
    "The library looks at the environment.",
    "The event is polled in vain.",
    "Copied for want of a kernel.",
    "Read there where it is needed.",
    "Beyond the border its weights add up.",
    "The fallback mends the strides.",
    "Of a contiguous tensor: the strides.",
    "By what a process sees the failure.",
    "What is wrong with a tensor.",
    "Serves instead of what is missing.",
    "Hint: install the driver.",
)

GOOD = (
    "An interrupted load is retried.",
    "Users who set the variable get the old order.",
    "NCHW stands for the order of dimensions; the emulator stands in for the SDK.",
    "If you want less memory, set a limit.",
    "What is a pack? A wheel with operators.",
    'The words "anew" and `nobody` are quoted.',
    "Fix: install the driver.",
    "Whether the stream is being captured into a graph.",
    "The whole of a tensor, and what a kernel reads of it.",
)


def found_words(name: str, text: str) -> list[tuple[int, str]]:
    return [(line, words) for line, words, _ in prose.file_findings(name, text)]


@pytest.mark.parametrize("sentence", BAD)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.py", '"""{}"""\n'),
        ("a.py", "x = 1\n# {}\n"),
        ("a.py", 'raise ValueError("{}")\n'),
        ("a.cpp", "// {}\nint x;\n"),
        ("a.h", "/* {} */\n"),
        ("a.mu", 'TORCH_CHECK(x, "{}");\n'),
        ("CMakeLists.txt", "# {}\n"),
        ("a.toml", 'reason = "{}"\n'),
        ("a.md", "# Title\n\n* {}\n"),
    ],
)
def test_a_bad_word_is_found_in_every_kind_of_prose(name, form, sentence):
    assert found_words(name, form.format(sentence))


def test_every_pattern_has_a_bad_case():
    unused = [
        pattern.pattern for pattern, _ in prose.RULES if not any(pattern.search(sentence) for sentence in BAD)
    ]
    assert not unused


@pytest.mark.parametrize("sentence", GOOD)
def test_plain_sentences_and_quotations_pass(sentence):
    for name, form in (("a.py", "# {}\n"), ("a.cpp", "// {}\n"), ("a.md", "{}\n")):
        assert not found_words(name, form.format(sentence))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "anew = nobody.asked(who)\n"),
        ("a.py", 'x = f"the value {wanted} of {who}"\n'),
        ("a.cpp", "bool asked = lies(nobody);\n"),
        ("a.cpp", "case 'who': // a case\n"),
        ("a.md", "```\nasked anew\n```\n"),
        ("a.md", "[the page](nobody/anew.md)\n"),
        ("a.json", '{"a": "asked anew"}\n'),
    ],
)
def test_code_is_left_alone(name, text):
    assert not found_words(name, text)


def test_a_finding_names_the_line_of_the_words_and_the_replacement():
    text = "int x; // an index\n// Waits until the memory\n// is given\n// up.\n"
    assert found_words("a.cpp", text) == [(4, "given up")]
    assert prose.check_prose({"clean/a.cpp": text}) == [
        "clean/a.cpp:4: 'given up' is not plain English. Fix: write aborts / stops / releases "
        "(CONTRIBUTING.md, Prose)"
    ]


def test_comments_behind_code_are_comments_of_their_own():
    text = "int a; // of the first\nint b; // What is second.\n"
    assert found_words("a.cpp", text) == [(2, "What is")]


def test_names_of_tests_are_prose():
    text = "x = 1\n\n\n@mark\ndef test_a_failure_is_told_to_whoever_waits():\n    pass\n"
    assert [words for _, words, _ in prose.test_name_findings("tests/a/test_x.py", text)] == [
        "is told",
        "whoever",
    ]
    assert prose.check_prose({"tests/b/test_x.py": text})[0].startswith("tests/b/test_x.py:5: 'is told'")
    assert not prose.check_prose({"tests/b/test_x.py": "def test_sums():\n    pass\n"})


def test_counts_are_by_folder():
    texts = {"docs/a.md": "One two.\n\nThree anew.\n", "packages/p/csrc/x.h": "// asked\nint x;\n"}
    assert prose.counts(texts, by_file=False) == {"docs": (2, 4, 1), "packages/p": (1, 1, 1)}


def test_lint_runs_the_rule(monkeypatch):
    root = Path(prose.__file__).parents[2]
    monkeypatch.setattr(tree_lint, "tracked_files", lambda root: [root / "README.md"])
    monkeypatch.setattr(tree_lint, "check_versions", lambda texts: [])  # it needs pyproject.toml
    monkeypatch.setattr(prose, "file_findings", lambda name, text: [(7, "anew", "again")])
    assert "README.md:7: 'anew'" in tree_lint.check_tree(root)[0]
