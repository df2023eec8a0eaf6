# SPDX-License-Identifier: Apache-2.0
"""NumPy `Generator` objects that the script made without a seed, so that a data loader's worker can seed them anew.

They are kept alive: NumPy's classes take no weak references. After LIMIT of them no more are remembered; that is reported.
"""
from . import report, streams

_LIMIT = 4096
_known = []
_numpy = [None]


def start(module) -> None:
    """`module` is numpy.random."""
    original = getattr(module, "default_rng", None)
    if original is None:  # NumPy before 1.17
        return
    _numpy[0] = module

    def default_rng(seed=None):
        generator = original(seed)
        if seed is None:
            _remember(generator.bit_generator)
        return generator

    default_rng.__doc__ = original.__doc__
    module.default_rng = default_rng


def _remember(bit_generator) -> None:
    if len(_known) < _LIMIT:
        _known.append(bit_generator)
    else:
        report.uncontrolled("numpy.random.default_rng", "more than %d were made without a seed; the loader's workers do"
                            " not seed the later ones" % _LIMIT)


def reseed(key: tuple) -> None:
    """Gives each its own state, a function of the root seed, `key` (numbers), and the order in which it was made."""
    for number, bit_generator in enumerate(_known):
        words = [streams.root() & 0xFFFFFFFF, streams.root() >> 32, number] + [int(k) & 0xFFFFFFFF for k in key]
        bit_generator.state = type(bit_generator)(_numpy[0].SeedSequence(words)).state


def states() -> list:
    return [bit_generator.state for bit_generator in _known]


def restore(saved: list) -> None:
    for bit_generator, state in zip(_known, saved):
        bit_generator.state = state
