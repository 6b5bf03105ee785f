# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Classes derived from Lightning's at run time, with pickling for strategies that spawn processes."""


class Derived:
    """Base of a class that a factory makes. Pickle cannot find such a class by its name.

    Attributes:
        made_by (tuple): the factory, a function of this package, and the class that it was called with.
    """

    made_by = ()

    def __reduce__(self):
        return _new, self.made_by, self.__dict__


def derive(factory, mixin, base):
    """A class of `mixin` and `base` with the name of `base`, made by `factory(base)`."""
    return type(base.__name__, (mixin, base), {"__module__": mixin.__module__, "made_by": (factory, base)})


def _new(factory, base):
    derived = factory(base)
    return derived.__new__(derived)
