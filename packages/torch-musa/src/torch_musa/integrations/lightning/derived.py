# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Classes derived from Lightning's at run time, picklable for strategies that spawn processes."""


class Derived:
    """Base of classes made by a factory, which pickle cannot find by name.

    Attributes:
        made_by (tuple): the factory function of this package, and its argument.
    """

    made_by = ()

    def __reduce__(self):
        return _new, self.made_by, self.__dict__


def derive(factory, mixin, base):
    """Returns a subclass of `mixin` and `base` with the name of `base`; `factory(base)` recreates it."""
    return type(base.__name__, (mixin, base), {"__module__": mixin.__module__, "made_by": (factory, base)})


def _new(factory, base):
    derived = factory(base)
    return derived.__new__(derived)
