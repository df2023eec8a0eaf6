# SPDX-License-Identifier: Apache-2.0
"""Seeds of `random` and NumPy: whatever would have taken entropy from the system takes a derived seed instead.

A seed that the script gives is respected. Where it gives none (`random.seed()`, `random.Random()`, `default_rng()`,
`RandomState()`, `SeedSequence()`), the k-th one of a process gets the k-th seed of a family.
`random.SystemRandom`, `secrets`, `uuid.uuid4` and `os.urandom` ask the system on purpose and are left alone; the
interposer counts what they take.
"""
import os

from . import processes, report, streams

_numpy_seeded_by_script = [False]


# ---- random --------------------------------------------------------------------------------------------------------


def seed_random(module) -> None:
    original = module.Random.seed

    def seed(self, a=None, version=2):
        if a is None:
            a = streams.for_python(self)
        else:
            streams.unseeded_python.discard(id(self))
        return original(self, a, version)

    seed.__doc__ = original.__doc__
    module.Random.seed = seed
    module.seed = module._inst.seed
    module._inst.seed(streams.mine("python"))
    report.setting("random", "seeded")
    processes.after_fork(streams.restart)
    # Python itself reseeds this generator from entropy in each forked child; ours has to come after that.
    os.register_at_fork(after_in_child=lambda: module._inst.seed(streams.mine("python")))


# ---- NumPy ---------------------------------------------------------------------------------------------------------


def patch_entropy(module) -> None:
    """Every generator of NumPy's without a seed asks this one function for its entropy (since NumPy 1.17)."""
    if not hasattr(module, "randbits"):
        report.uncontrolled("numpy", "this version takes its entropy in a way that is not known here")
        return
    module.randbits = streams.for_numpy


def seed_numpy(module) -> None:
    original = module.seed

    def seed(seed=None):
        _numpy_seeded_by_script[0] = seed is not None
        return original(seed)

    seed.__doc__ = original.__doc__
    original(streams.mine("numpy", 32))
    module.seed = seed
    report.setting("numpy.random", "seeded")
    processes.after_fork(lambda: _reseed_numpy(original))


def _reseed_numpy(seed) -> None:
    """A forked child would draw its parent's numbers. Where the script has chosen the seed it may want just that."""
    if not _numpy_seeded_by_script[0]:
        seed(streams.mine("numpy", 32))
