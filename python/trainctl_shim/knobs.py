# SPDX-License-Identifier: Apache-2.0
"""What the envelope asks for: `TRAINCTL_KNOBS`, a list of `name=value` with spaces between."""
import os

_DEFAULTS = {"python": "on", "python_seeds": "on", "torch": "on", "seed_scope": "worker", "state_check": "on", "trace": "1"}


def _read() -> dict:
    given = {}
    for word in os.environ.get("TRAINCTL_KNOBS", "").split():
        name, equals, value = word.partition("=")
        if equals:
            given[name] = value
    return {**_DEFAULTS, **given}


_values = _read()


def is_run() -> bool:
    """Whether this process belongs to a run."""
    return "TRAINCTL_SEED" in os.environ and "TRAINCTL_KNOBS" in os.environ


def value(name: str) -> str:
    """The value of a knob, its default where the envelope does not name it; "" for one that nobody knows."""
    return _values.get(name, "")


def is_on(name: str) -> bool:
    return value(name) not in ("off", "")
