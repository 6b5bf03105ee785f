# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the reference of the Python API from docstrings.

python docs/reference_python.py --out FILE
"""

import importlib
import inspect
import re
import textwrap

import pages

INTRODUCTION = """\
# Python API

Written by `python docs/reference_python.py` from the docstrings of the installed packages. Names have the
signatures and meanings of `torch.cuda` unless their text says otherwise. In signatures `Device` is
`torch.device | str | int | None`, and `PoolId` is `tuple[int, int]`.

"""
# Modules after torch.musa, in the order of the page. The last two are objects: settings of a backend.
MODULES = ("torch.musa.amp", "torch.musa.mccl", "torch_musa.utils.cpp_extension", "musa_runtime.config")
BACKENDS = ("torch.backends.mudnn", "torch.backends.musa")
ROLE = re.compile(r":(?:py:)?(?:func|meth|class|mod|attr|data|exc|obj):`~?([^`]+)`")
SECTION = re.compile(r"^(Args|Arguments|Returns|Yields|Raises|Note|Notes|Example|Examples|Attributes):(.*)$")
ENTRY = re.compile(r"^(\*{0,2}\w[\w., *]*?)(?: \(([^)]*)\))?: (.*)$")


def public_names(module):
    """The public names of a module in order: `__all__`, or what the module itself defines."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return [name for name in declared if not name.startswith("_")]
    names = [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    ]
    return sorted(name for name in names if not name.startswith("_"))


def submodules(module):
    """Names of the public modules in `__all__`."""
    return [name for name in public_names(module) if inspect.ismodule(getattr(module, name))]


def markdown(docstring):
    """A docstring as Markdown: roles become code, and the sections of Google's style become field lists."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    result, index = [], 0
    while index < len(lines):
        section = SECTION.match(lines[index])
        if not section:
            result.append(lines[index])
            index += 1
            continue
        end = index + 1
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
            end += 1
        body = textwrap.dedent("\n".join(lines[index + 1 : end])).strip()
        first = section[2].strip()
        result += ["", _section(section[1], f"{first}\n{body}".strip()), ""]
        index = end
    return ROLE.sub(r"`\1`", "\n".join(result)).strip() + "\n"


def _section(title, body):
    if title in ("Example", "Examples"):
        return f"**{title}**\n\n```python\n{body}\n```"
    entries = []
    for line in body.splitlines():
        entry = ENTRY.match(line) if title not in ("Note", "Notes") else None
        if entry and not line.startswith(" "):
            kind = f" ({entry[2]})" if entry[2] else ""
            entries.append(f"* `{entry[1]}`{kind}: {entry[3]}")
        elif entries:
            entries.append("  " + line.strip())
        else:
            break
    if not entries or len(entries) < len(body.splitlines()):
        return f"**{title}**\n\n{body}"
    return f"**{title}**\n\n" + "\n".join(entries)


class _Unquoted(str):
    """An annotation. inspect prints the `repr` of annotations that are strings."""

    def __repr__(self):
        return str(self)


def signature(value):
    """The parameters of a callable with their types as text, `(...)` where Python cannot give them."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        parameter.replace(annotation=_unquoted(parameter.annotation))
        for parameter in found.parameters.values()
    ]
    result = inspect.Signature.empty if inspect.isclass(value) else _unquoted(found.return_annotation)
    text = str(found.replace(parameters=parameters, return_annotation=result))
    # Defaults that print an address would change the page with each run.
    return re.sub(r"<([\w.]+)[^<>]* at 0x[0-9a-f]+>", r"\1", text)


def _unquoted(annotation):
    return _Unquoted(annotation) if isinstance(annotation, str) else annotation


def directive(kind, name, text):
    """A directive of Sphinx's Python domain; its fence is longer than those in the text."""
    fences = [len(fence) for fence in re.findall(r"^`{3,}", text, re.MULTILINE)]
    mark = "`" * max([2, *fences], default=2) + "`"
    return f"{mark}{{py:{kind}}} {name}\n{text}{mark}\n\n"


def entry(module, name):
    """The reference of one public name."""
    value = getattr(module, name)
    if inspect.isclass(value):
        text = markdown(value.__doc__)
        for member in sorted(vars(value)):
            text += _member(value, member)
        return directive("class", f"{name}{signature(value)}", text)
    if callable(value):
        return directive("function", f"{name}{signature(value)}", markdown(value.__doc__))
    text = markdown(value.__doc__) if type(value).__module__ != "builtins" else f"Value: `{value!r}`\n"
    return directive("data", name, text)


def _member(owner, name):
    if name.startswith("_"):
        return ""
    value = inspect.getattr_static(owner, name)
    if isinstance(value, property):
        return "\n" + directive("property", name, markdown(value.__doc__))
    function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    if not callable(function):
        return ""
    # A bound method, without the parameter for the class.
    callable_ = getattr(owner, name) if isinstance(value, classmethod) else function
    return "\n" + directive("method", f"{name}{signature(callable_)}", markdown(function.__doc__))


def module_section(title, module, names, skip=()):
    """A section with the names of a module. skip: names that another section describes, by their objects."""
    text = f"## {title}\n\n{markdown(module.__doc__)}\n```{{py:module}} {title}\n```\n\n"
    elsewhere = [name for name in names if any(getattr(module, name) is value for value in skip)]
    text += "".join(entry(module, name) for name in names if name not in elsewhere)
    if elsewhere:
        text += "Also: " + ", ".join(f"`torch.musa.{name}`" for name in elsewhere) + ", described above.\n\n"
    return text


def backend_section(title, backend):
    """A section with the settings of an object below torch.backends."""
    text = f"## {title}\n\n{markdown(type(backend).__doc__)}\n```{{py:module}} {title}\n```\n\n"
    for name in sorted(name for name in dir(type(backend)) if not name.startswith("_")):
        value = inspect.getattr_static(type(backend), name)
        if inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod)):
            text += directive(
                "function", f"{name}{signature(getattr(backend, name))}", markdown(value.__doc__)
            )
        else:
            text += directive("data", name, markdown(value.__doc__ if isinstance(value, property) else None))
    return text


def page():
    import torch

    musa = torch.musa
    modules = submodules(musa)
    names = [name for name in public_names(musa) if name not in modules]
    text = INTRODUCTION + module_section("torch.musa", musa, names)
    described = [getattr(musa, name) for name in names]
    for name in modules:
        module = getattr(musa, name)
        text += module_section(f"torch.musa.{name}", module, public_names(module), described)
    for title in MODULES:
        module = importlib.import_module(title)
        text += module_section(title, module, public_names(module))
    for title in BACKENDS:
        text += backend_section(title, getattr(torch.backends, title.rpartition(".")[2]))
    return text


if __name__ == "__main__":
    pages.main(page, __file__, __doc__)
