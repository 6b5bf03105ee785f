# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes docs/adding_an_operator.md, whose code is that of the tree.

python docs/adding_an_operator.py [--out docs/adding_an_operator.md]
"""

import pathlib
import re

import pages

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACK = ROOT / "packages" / "musa-ops-ported"

PAGE = """\
# Adding an operator to the ported pack

Written by `python docs/adding_an_operator.py` from the tree; do not edit. All code below is what is built.

An operator is a word in `packages/musa-ops-ported/src/musa_ops_ported/ops.yaml`, a kernel in
`csrc/kernels`, and a line in `tests/musa_ops_ported/test_operators.py`. Its forms (functional, in place,
`out=`), checks, outputs and registration are generated.

## abs: torch does all but the loop

torch's own `abs.out` works out shapes and dtypes with a TensorIterator, which is the same for every device,
and then calls a DispatchStub: the loop for the device at hand. So the operator is served by *stub*:

```yaml
{abs_yaml}
```

The kernel is one function over the iterator. `pointwise` runs a function over the elements: dense or
strided, with conversions, with numbers in an operand's place. `MUSA_DISPATCH` calls the block with
`scalar_t` for each dtype of a set.

```cpp
{abs_kernel}
```

The file registers it for the device:

```cpp
{abs_registration}
```

## tril: a kernel of one's own

torch's implementation of `tril` computes on the CPU, so ours takes its place: a *kernel*.

```yaml
{tril_yaml}
```

`tril` is a structured operator: torch's meta function has checked the arguments and said what the output is
like, and the generated forms have made it. What is left to write is a function with torch's arguments and
the output; its declaration is in the generated `kernels.h`.

```cpp
{tril_kernel}

{tril_function}
```

`for_each_offset` gives a thread the number of an element and where it lies in each tensor, whatever the
strides. The kernel moves bytes and never computes with them, so `by_size` makes five kernels do for all
dtypes.

## The test

```python
{test}
```

The line asks that the pack serves the operator. That it computes what the CPU computes, in every form, on
strided, empty and expanded arguments and in all dtypes, PyTorch's own database of operators asks, without a
line of ours:

```
TORCH_MUSA_OPS=ported,host python -m pytest tests/conformance -k "abs or tril"
```

## Build

`pip install --no-build-isolation --no-deps -e packages/musa-ops-ported`, or `python3 tools/dev.py setup`.
`python -m torch_musa ops 'aten::tril*'` prints who serves.
"""


def function(path, begin):
    """The text of a function of a C++ file, from its first line to its closing brace."""
    text = (PACK / path).read_text(encoding="utf-8")
    start = text.index(begin)
    start = text.rindex("\n", 0, start) + 1
    depth = 0
    for position in range(text.index("{", start), len(text)):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth == 0:
            return text[start : position + 1]
    raise ValueError(f"{path}: {begin} does not end")


def line(path, pattern):
    """The line of a file that matches."""
    (found,) = [text for text in path.read_text(encoding="utf-8").splitlines() if re.search(pattern, text)]
    return found.strip()


def entry(source, operator):
    """Family, file and way of an operator in ops.yaml, with that operator alone."""
    import yaml

    families = yaml.safe_load((PACK / "src/musa_ops_ported/ops.yaml").read_text())
    del families["removed"]  # operators that some minors of torch do not have
    for family, sources in families.items():
        for way, names in sources.get(source, {}).items():
            if operator in names:
                return f"{family}:\n  {source}:\n    {way}: [..., {operator}, ...]"
    raise ValueError(f"ops.yaml has no {operator} in {source}")


def page():
    unary = "csrc/kernels/UnaryOpsKernel.mu"
    triangle = "csrc/kernels/TriangularOps.mu"
    return PAGE.format(
        abs_yaml=entry("UnaryOpsKernel.mu", "abs.out"),
        abs_kernel=function(unary, "void abs("),
        abs_registration=line(PACK / unary, r"\(abs_stub"),
        tril_yaml=entry("TriangularOps.mu", "tril"),
        tril_kernel=function(triangle, "void keep_triangle("),
        tril_function=function(triangle, "void tril("),
        test=line(ROOT / "tests/musa_ops_ported/test_operators.py", r'^ +"aten::tril",$'),
    )


if __name__ == "__main__":
    pages.main(page, __file__, __doc__)
