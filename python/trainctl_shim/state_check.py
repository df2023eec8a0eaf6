# SPDX-License-Identifier: Apache-2.0
"""Notices what a script or a library turns back, and says where: flags of PyTorch, seeds from a clock, late variables.

A flag that is set to another value than the shim's is noted with the file and line of whoever did it, at the moment it is
done; a change that came past the functions known here is noted at the next step of an optimizer. Nothing is put back: the
script may mean it. The launcher shows the notes, and `verify` has them among its reasons.
"""
import os
import sys
import time

from . import hooks, report

_wanted = {}  # name of a flag -> its value when the script began
_getters = {}
_PINNED = ("CUBLAS_", "CUDA_", "CUDNN_", "NCCL_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_", "BLIS_", "ONEDNN_", "DNNL_", "TF_", "XLA_",
           "TORCH", "ATEN_", "PYTHONHASHSEED", "GLIBC_TUNABLES", "LD_PRELOAD", "LC_ALL", "TZ")


# ---- who did it ----------------------------------------------------------------------------------------------------


def _place():
    """File and line of the caller in the script. None if it is no doing of the script's: the shim's own, or what a loader's
    worker does when it begins."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in (__file__, hooks.__file__):
        frame = frame.f_back
    if frame.f_code.co_filename.startswith(os.path.dirname(__file__)) or frame.f_code.co_name == "_worker_loop":
        return None
    torch = sys.modules.get("torch")
    library = os.path.dirname(torch.__file__) if torch and torch.__file__ else None
    while library and frame is not None and frame.f_code.co_filename.startswith(library):
        frame = frame.f_back
    if frame is None:
        return "", 0
    name = frame.f_code.co_filename
    here = os.getcwd() + os.sep
    return (name[len(here):] if name.startswith(here) else name), frame.f_lineno


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


def _look(where=("", 0)) -> None:
    for name, getter in _getters.items():
        value = _read(getter)
        if value is not None and value != _wanted[name]:
            if where is not None:
                report.note(name, "was %s, is %s" % (_wanted[name], value), *where)
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
        hooks.after("state_check", torch, name, look)
    for name in ("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_math_sdp", "enable_cudnn_sdp"):
        hooks.after("state_check", torch.backends.cuda, name, look)
    hooks.after("state_check", torch.backends.ContextProp, "__set__", look)  # cudnn.benchmark = ..., and its like
    hooks.after("state_check", type(torch.backends.cuda.matmul), "__setattr__", look)
    hooks.after("state_check", torch, "manual_seed", lambda seed=None, *rest: _check_seed("torch.manual_seed", seed))
    hooks.after("state_check", torch.optim.Optimizer, "__init__", _watch_steps)
    _watch_environment()


def _watch_steps(optimizer, *ignored) -> None:
    """The class of each optimizer that is made has its `step` looked behind: subclasses have their own."""
    cls = type(optimizer)
    if not getattr(cls.step, "_trainctl_watched", False):
        hooks.after("state_check", cls, "step", lambda *arguments: _look())
        cls.step._trainctl_watched = True


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
                report.note(what, "seeded with a clock's %s: %d" % (unit, seed), *(_place() or ("", 0)))
                return
    if seed == os.getpid():
        report.note(what, "seeded with a process id: %d" % seed, *(_place() or ("", 0)))


def watch_random(module) -> None:
    hooks.after("state_check", module, "seed", lambda a=None, *rest: _check_seed("random.seed", a))


def watch_numpy(module) -> None:
    hooks.after("state_check", module, "seed", lambda seed=None, *rest: _check_seed("numpy.random.seed", seed))


# ---- variables that come too late ----------------------------------------------------------------------------------


def _watch_environment() -> None:
    pinned = {name: value for name, value in os.environ.items() if name.startswith(_PINNED)}

    def check(self, key, value):
        if self is os.environ and isinstance(key, str) and key.startswith(_PINNED) and value != pinned.get(key):
            report.note("environment", "%s was %s, is %s: too late for libraries that have read it"
                        % (key, repr(pinned[key]) if key in pinned else "not set", repr(value)), *(_place() or ("", 0)))

    hooks.after("state_check", type(os.environ), "__setitem__", check)
