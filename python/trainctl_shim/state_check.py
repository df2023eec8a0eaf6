# SPDX-License-Identifier: Apache-2.0
"""Notices what a script or a library turns back, and says where: flags of PyTorch, seeds from a clock, late variables.

A flag that is set to another value than the shim's is noted with the file and line of whoever did it, at the moment it is
done; a change that came past the functions known here is noted at the next step of an optimizer. Nothing is put back: the
script may mean it. The launcher shows the notes, and `verify` has them among its reasons.
"""
import functools
import os
import sys
import time

from . import hooks, report

_wanted = {}  # name of a flag -> its value when the script began
_getters = {}
_noted = set()
_PINNED = ("CUBLAS_", "CUDA_", "CUDNN_", "NCCL_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_", "BLIS_", "ONEDNN_", "DNNL_", "TF_", "XLA_",
           "TORCH", "ATEN_", "PYTHONHASHSEED", "GLIBC_TUNABLES", "LD_PRELOAD", "LC_ALL", "TZ")


# ---- who did it ----------------------------------------------------------------------------------------------------


def _place():
    """File and line of the caller that is neither PyTorch nor the shim."""
    torch = sys.modules.get("torch")
    ours = (os.path.dirname(os.path.abspath(__file__)),) + ((os.path.dirname(torch.__file__),) if torch and torch.__file__ else ())
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(ours):
        frame = frame.f_back
    if frame is None:
        return "", 0
    name = frame.f_code.co_filename
    here = os.getcwd() + os.sep
    return (name[len(here):] if name.startswith(here) else name), frame.f_lineno


def _note(what: str, detail: str, where=None) -> None:
    file, line = where or ("", 0)
    if (what, detail, file, line) not in _noted:
        _noted.add((what, detail, file, line))
        report.note(what, detail, file, line)


def _after(owner, name: str, check) -> None:
    """`owner.name` goes on as it was; behind each call `check(*arguments)` looks."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def call(*args, **kwargs):
        value = original(*args, **kwargs)
        hooks.run("state_check", check, *args)
        return value

    setattr(owner, name, call)


# ---- flags of PyTorch ----------------------------------------------------------------------------------------------


def _flags(torch) -> dict:
    backends = torch.backends
    flags = {
        "torch.backends.cudnn.benchmark": lambda: backends.cudnn.benchmark,
        "torch.backends.cudnn.deterministic": lambda: backends.cudnn.deterministic,
        "torch.backends.cudnn.allow_tf32": lambda: backends.cudnn.allow_tf32,
        "torch.backends.cuda.matmul.allow_tf32": lambda: backends.cuda.matmul.allow_tf32,
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction":
            lambda: backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        "torch.use_deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
        "torch.use_deterministic_algorithms(warn_only)": getattr(torch, "is_deterministic_algorithms_warn_only_enabled", None),
        "torch.set_num_threads": torch.get_num_threads,
        "torch.set_flush_denormal": lambda: (torch.full((), 1e-38) * 0.01).item() == 0,
        "torch.set_float32_matmul_precision": torch.get_float32_matmul_precision,
    }
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        flags["torch.backends.cuda.enable_%s_sdp" % kind] = getattr(backends.cuda, "%s_sdp_enabled" % kind, None)
    return {name: getter for name, getter in flags.items() if getter is not None}


def _read(getter):
    try:
        return getter()
    except Exception:  # reading a name of the older interface after the newer one was used is an error in some versions
        return None


def _look(where=None) -> None:
    for name, getter in _getters.items():
        value = _read(getter)
        if value is not None and value != _wanted[name]:
            _note(name, "was %s, is %s" % (_wanted[name], value), where)
            _wanted[name] = value


def start(torch) -> None:
    """`torch` has been imported and prepared."""
    for name, getter in _flags(torch).items():
        value = _read(getter)
        if value is not None:
            _getters[name], _wanted[name] = getter, value
    look = lambda *ignored: _look(_place())  # noqa: E731
    for name in ("use_deterministic_algorithms", "set_deterministic_debug_mode", "set_num_threads", "set_flush_denormal",
                 "set_float32_matmul_precision"):
        _after(torch, name, look)
    for name in ("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_math_sdp", "enable_cudnn_sdp"):
        _after(torch.backends.cuda, name, look)
    _after(torch.backends.ContextProp, "__set__", look)  # cudnn.benchmark = ..., and its like
    _after(type(torch.backends.cuda.matmul), "__setattr__", look)
    _after(torch, "manual_seed", lambda seed=None, *rest: _check_seed("torch.manual_seed", seed))
    _watch_steps(torch.optim.Optimizer)
    _watch_environment()


def _watch_steps(base) -> None:
    original = base.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        cls = type(self)
        if not getattr(cls.step, "_trainctl_watched", False):
            _after(cls, "step", lambda *ignored: _look())
            cls.step._trainctl_watched = True

    base.__init__ = init


# ---- seeds from a clock --------------------------------------------------------------------------------------------


def _check_seed(what: str, seed) -> None:
    """A number within a day of now, in seconds or a finer unit, or this process's id, was hardly chosen."""
    try:
        seed = int(seed)
    except (TypeError, ValueError):
        return
    now = time.time()
    for unit, scale in (("seconds", 1), ("milliseconds", 10 ** 3), ("microseconds", 10 ** 6), ("nanoseconds", 10 ** 9)):
        for bits in (64, 32):
            if abs(seed - int(now * scale) % (1 << bits)) < 86400 * scale and (bits == 64 or scale < 10 ** 6):
                _note(what, "seeded with a clock's %s: %d" % (unit, seed), _place())
                return
    if seed == os.getpid():
        _note(what, "seeded with a process id: %d" % seed, _place())


def watch_random(module) -> None:
    _after(module, "seed", lambda a=None, *rest: _check_seed("random.seed", a))


def watch_numpy(module) -> None:
    _after(module, "seed", lambda seed=None, *rest: _check_seed("numpy.random.seed", seed))


# ---- variables that come too late ----------------------------------------------------------------------------------


def _watch_environment() -> None:
    pinned = {name: value for name, value in os.environ.items() if name.startswith(_PINNED)}

    def check(self, key, value):
        if self is os.environ and isinstance(key, str) and key.startswith(_PINNED) and value != pinned.get(key):
            _note("environment", "%s was %s, is %s: too late for libraries that have read it"
                  % (key, repr(pinned[key]) if key in pinned else "not set", repr(value)), _place())

    _after(type(os.environ), "__setitem__", check)
