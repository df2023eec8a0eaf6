# SPDX-License-Identifier: Apache-2.0
"""Seeds for generators that are not ours, derived from the root seed by name (docs/random.md, "Seeds for others").

A seed is the beginning of SHA-256("trainctl-foreign 1" NUL, the root seed as 8 little-endian bytes, the name), read as a
little-endian number: the same that the launcher derives. Names of this process's streams carry its place among the
processes of the run (`processes`), never a pid or a time.
"""
import os

try:  # built in, and several milliseconds quicker to import than hashlib
    from _sha2 import sha256 as _sha256  # Python 3.12 and later
except ImportError:
    try:
        from _sha256 import sha256 as _sha256
    except ImportError:
        from hashlib import sha256 as _sha256

from . import processes

_counts = {}


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
    """The next of a family of streams of this process: for generators that are made without a seed, in their order."""
    number = _counts.get(family, 0)
    _counts[family] = number + 1
    return mine("%s.%d" % (family, number), bits)


def restart() -> None:
    """After a fork: the child's families begin again, under its own name."""
    _counts.clear()
