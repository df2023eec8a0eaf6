# SPDX-License-Identifier: Apache-2.0
"""Seeds for generators that are not ours, derived from the root seed by name (docs/random.md, "Seeds for others").

A seed is the beginning of SHA-256("trainctl-foreign 1" NUL, the root seed as 8 little-endian bytes, the name), read as a
little-endian number: the same that the launcher derives. Names of this process's streams carry its place among the
processes of the run (`processes`), never a pid or a time.
"""
import os
import sys

try:  # built in, and several milliseconds quicker to import than hashlib
    from _sha2 import sha256 as _sha256  # Python 3.12 and later
except ImportError:
    try:
        from _sha256 import sha256 as _sha256
    except ImportError:
        from hashlib import sha256 as _sha256

from . import processes

_counts = {}
_LIMIT = 65536
unseeded_python = set()  # ids of random.Random objects that the script gave no seed
unseeded_numpy = set()   # what NumPy's generators without a seed were given for entropy


class Sample:
    """The sample that is being loaded. What is made without a seed meanwhile has a seed of the sample's own."""

    def __init__(self, address: str):
        self.address = address
        self.counts = {}
        self.entropies = {}  # of NumPy's generators: {number: name within the sample}
        self.pythons = []    # [(name within the sample, random.Random)]


sample = [None]


def digest(data: bytes) -> bytes:
    return _sha256(data).digest()


def root() -> int:
    return int(os.environ["TRAINCTL_SEED"])


def derive(name: str, bits: int = 64) -> int:
    """A number of up to 256 bits for `name`, the same in every process."""
    text = b"trainctl-foreign 1\0" + root().to_bytes(8, "little") + name.encode("utf-8", "surrogateescape")
    return int.from_bytes(_sha256(text).digest()[: (bits + 7) // 8], "little") & ((1 << bits) - 1)


def mine(name: str, bits: int = 64) -> int:
    """The same for this process alone. The first process of a run has the plain name."""
    place = processes.path()
    return derive(name if place == "0" else name + "@" + place, bits)


def following(family: str, bits: int = 64) -> int:
    """The next of a family of streams: for generators that are made without a seed, in their order. It is one of this process,
    or of the sample that it loads."""
    at = sample[0]
    counts = _counts if at is None else at.counts
    number = counts.get(family, 0)
    counts[family] = number + 1
    name = "%s.%d" % (family, number)
    return mine(name, bits) if at is None else derive(at.address + "/" + name, bits)


def for_python(generator) -> int:
    """The seed of a random.Random that the script gave none. Workers are started with temporary files, whose names are drawn
    from one as well: it has a family of its own, or else the script's next one would depend on whether there are workers."""
    caller = sys._getframe(2)
    if caller.f_code.co_name == "__init__" and caller.f_back is not None:
        caller = caller.f_back
    if caller.f_globals.get("__name__") == "tempfile":
        return mine("python.tempfile.%d" % _next_tempfile())
    at = sample[0]
    if at is not None:
        at.pythons.append(("python.random.%d" % at.counts.get("python.random", 0), generator))
    if len(unseeded_python) < _LIMIT:
        unseeded_python.add(id(generator))
    return following("python.random")


def _next_tempfile() -> int:
    _counts["tempfile"] = _counts.get("tempfile", -1) + 1
    return _counts["tempfile"]


def for_numpy(bits: int) -> int:
    """The entropy of a generator of NumPy's that the script gave no seed."""
    at = sample[0]
    name = None if at is None else "numpy.random.%d" % at.counts.get("numpy.random", 0)
    number = following("numpy.random", bits)
    if at is not None:
        at.entropies[number] = name
    if len(unseeded_numpy) < _LIMIT:
        unseeded_numpy.add(number)
    return number


def restart() -> None:
    """After a fork: the child's families begin again, under its own name."""
    _counts.clear()
    sample[0] = None
