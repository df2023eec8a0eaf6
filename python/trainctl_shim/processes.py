# SPDX-License-Identifier: Apache-2.0
"""A name for each process of a run that is the same in every repetition: its place in the tree of processes.

The first is "0"; the k-th child that a process starts is its name, a point, and k. Forks are counted by
`os.register_at_fork`, programs by `subprocess` and `multiprocessing` (`children`), which pass the name on in `TRAINCTL_PYTHON_PROCESS`. A
child that is started past all of them (os.system, os.posix_spawn) has its parent's name. Children that one process
starts from several threads are numbered in the order in which they come.
"""
import os

_state = {"path": os.environ.get("TRAINCTL_PYTHON_PROCESS", "0"), "children": 0, "next": None, "forked": False}
_after_fork = []


def path() -> str:
    return _state["path"]


def is_forked() -> bool:
    """Whether this process was forked by a Python process that began under the shim, rather than started."""
    return _state["forked"]


def next_child() -> str:
    """The name of the next child; each call counts one."""
    _state["children"] += 1
    return "%s.%d" % (_state["path"], _state["children"])


def after_fork(callback) -> None:
    """`callback` runs in each forked child, after those that were registered before."""
    _after_fork.append(callback)


def _before() -> None:
    _state["next"] = next_child()


def _in_child() -> None:
    _state["path"] = _state["next"] or _state["path"]
    _state["children"] = 0
    _state["forked"] = True
    os.environ["TRAINCTL_PYTHON_PROCESS"] = _state["path"]


def run_after_fork() -> None:
    from . import hooks
    for callback in _after_fork:
        hooks.run("fork", callback)


def start() -> None:
    from . import hooks
    os.environ["TRAINCTL_PYTHON_PROCESS"] = _state["path"]
    os.register_at_fork(before=_before, after_in_child=_in_child)
    os.register_at_fork(after_in_child=run_after_fork)
    hooks.on_import("subprocess", "children.patch_subprocess")
    hooks.on_import("multiprocessing.util", "children.patch_spawn")
