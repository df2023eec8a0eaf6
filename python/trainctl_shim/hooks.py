# SPDX-License-Identifier: Apache-2.0
"""Doing something to a module right after it was imported, before its importer can use it.

    hooks.on_import("numpy.random", "seed_python.seed_numpy")   # imports the shim's module then, calls it with numpy.random

Callbacks of one name run in the order of registration, at once if the module is there already. They are functions, or
names of functions in modules of the shim, which are imported when they are needed: most processes need none, and a
command's Python caches no bytecode. An exception in one is reported and does not reach the script.
"""
import sys

_callbacks = {}


def _resolve(callback):
    if not isinstance(callback, str):
        return callback
    module, _, function = callback.rpartition(".")
    return getattr(__import__("trainctl_shim." + module, fromlist=[function]), function)


def describe(error: BaseException) -> str:
    """What was raised, and by which line."""
    where = error.__traceback__
    while where.tb_next is not None:
        where = where.tb_next
    file = where.tb_frame.f_code.co_filename.rpartition("/")[2]
    return "%s: %s (%s:%d)" % (type(error).__name__, error, file, where.tb_lineno)


def run(name: str, callback, *arguments) -> None:
    """Calls `callback`; what it raises is reported as uncontrolled under `name`."""
    try:
        _resolve(callback)(*arguments)
    except Exception as error:
        from . import report
        report.uncontrolled(name, describe(error))


def after(label: str, owner, name: str, callback) -> None:
    """`owner.name` goes on as it was; behind each call `callback` gets its positional arguments. What is not there is left."""
    import functools  # most processes don't
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def call(*args, **kwargs):
        value = original(*args, **kwargs)
        run(label, callback, *args)
        return value

    setattr(owner, name, call)


def on_import(name: str, callback) -> None:
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        run(name, callback, module)
        return
    _callbacks.setdefault(name, []).append(callback)


class _Loader:
    """A loader that does what another one does, and then runs the callbacks."""

    def __init__(self, name, loader):
        self._name, self._loader = name, loader

    def __getattr__(self, attribute):
        return getattr(self._loader, attribute)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        spec = module.__spec__
        spec.loader = self._loader  # the script sees the loader that it would have seen
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for callback in _callbacks.pop(self._name, ()):
            run(self._name, callback, module)


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _callbacks:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is _Finder or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(name, spec.loader)
                return spec
        return None


sys.meta_path.insert(0, _Finder)
