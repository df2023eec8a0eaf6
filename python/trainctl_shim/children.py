# SPDX-License-Identifier: Apache-2.0
"""Programs that a Python process starts get a name among the processes of the run: `TRAINCTL_PYTHON_PROCESS`."""
import functools
import os

from . import processes


def _named(environment) -> dict:
    given = dict(os.environ if environment is None else environment)
    encoded = any(isinstance(key, bytes) for key in given)
    name = processes.next_child()
    given[b"TRAINCTL_PYTHON_PROCESS" if encoded else "TRAINCTL_PYTHON_PROCESS"] = name.encode() if encoded else name
    return given


def patch_subprocess(module) -> None:
    original = module.Popen.__init__
    position = 10  # of `env` among the arguments after `self`: subprocess documentation, "Popen Constructor"

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        if "TRAINCTL_RUN" not in os.environ:  # the script made itself another environment
            return original(self, *args, **kwargs)
        if len(args) > position:
            args = args[:position] + (_named(args[position]),) + args[position + 1:]
        else:
            kwargs["env"] = _named(kwargs.get("env"))
        return original(self, *args, **kwargs)

    module.Popen.__init__ = init


def patch_spawn(module) -> None:
    """multiprocessing starts programs (spawn, forkserver) through this one function, with our own environment."""
    original = module.spawnv_passfds

    def spawnv_passfds(path, args, passfds):
        before = os.environ.get("TRAINCTL_PYTHON_PROCESS")
        os.environ["TRAINCTL_PYTHON_PROCESS"] = processes.next_child()
        try:
            return original(path, args, passfds)
        finally:
            if before is None:
                del os.environ["TRAINCTL_PYTHON_PROCESS"]
            else:
                os.environ["TRAINCTL_PYTHON_PROCESS"] = before

    module.spawnv_passfds = spawnv_passfds
