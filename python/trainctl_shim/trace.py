# SPDX-License-Identifier: Apache-2.0
"""The trace of a PyTorch script: the bits of every optimizer step, without the script's help.

A step is a call of any optimizer's `step`; every N-th (`trace`) is recorded: which samples the loader handed out since the
step before and their tensors, the loss (the number whose `backward` was called last), and of all parameters of all
optimizers that there were at the first step gradient, optimizer state and value. Step 0 holds the parameters as they were
before. A later process of the run with the same fields goes on in the same file.

Looks on and changes nothing; an error ends the trace, is reported, and never reaches the script.
"""
import functools
import os

from . import hooks, knobs, report

_every = int(knobs.value("trace")) if knobs.value("trace").isdigit() else 0
_recorder = [None]


def start(torch) -> None:
    """`torch` has just been imported."""
    if _every == 0 or not os.environ.get("TRAINCTL_TRACE"):
        return
    from .trace_record import Recorder
    _recorder[0] = Recorder(torch, _every)
    hooks.after("trace", torch.optim.Optimizer, "__init__", _see_optimizer)
    _wrap_backward(torch.autograd)
    hooks.on_import("torch.utils.data.dataloader", _wrap_loaders)
    hooks.on_import("torch._dynamo", _keep_out_of_graphs)


def _guarded(function, *arguments) -> None:
    """Calls one of the recorder's functions; after an error there is no recorder any more."""
    recorder = _recorder[0]
    if recorder is None:
        return
    try:
        if recorder.pid != os.getpid():
            if recorder.is_loaders_worker():
                return
            recorder = _recorder[0] = recorder.after_fork()
        function(recorder, *arguments)
    except Exception as error:
        _recorder[0] = None
        report.uncontrolled("trace", "it ends: " + hooks.describe(error))


def _keep_out_of_graphs(dynamo) -> None:
    """A step that is compiled calls us between its graphs; else each of the shim's functions would be compiled, again and again."""
    global _guarded
    _guarded = dynamo.disable(_guarded)


# ---- what is looked at ---------------------------------------------------------------------------------------------


def _see_optimizer(optimizer, *ignored) -> None:
    """The class of each optimizer that is made gets a `step` around its own: subclasses have theirs."""
    _guarded(lambda recorder: _wrap_step(type(optimizer)))
    _guarded(lambda recorder: recorder.add_optimizer(optimizer))


def _wrap_step(cls) -> None:
    original = cls.step
    if getattr(original, "_trainctl", False):
        return

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        if _recorder[0] is None or _recorder[0].is_inside:  # a step that calls its superclass's is one step
            return original(self, *args, **kwargs)
        _guarded(lambda r: r.before_step())
        try:
            value = original(self, *args, **kwargs)
        finally:
            _guarded(lambda r: r.leave_step())
        _guarded(lambda r: r.after_step())
        return value

    step._trainctl = True
    cls.step = step


def _wrap_backward(autograd) -> None:
    original = autograd.backward

    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        _guarded(lambda recorder: recorder.see_loss(tensors))
        return original(tensors, *args, **kwargs)

    autograd.backward = backward


def _wrap_loaders(dataloader) -> None:
    """A loader asks for indices ahead of the batches that it hands out; both come in the same order."""
    cls = dataloader._BaseDataLoaderIter
    next_index, next_batch, reset_all = cls._next_index, cls.__next__, cls._reset

    @functools.wraps(next_index)
    def index(self):
        value = next_index(self)
        self.__dict__.setdefault("_trainctl_indices", []).append(value)
        return value

    @functools.wraps(next_batch)
    def batch(self):
        value = next_batch(self)
        waiting = self.__dict__.get("_trainctl_indices")
        indices = waiting.pop(0) if waiting else None
        _guarded(lambda recorder: recorder.see_batch(indices, value))
        return value

    @functools.wraps(reset_all)
    def reset(self, *args, **kwargs):  # persistent workers: an epoch that was left early has indices left over
        self.__dict__.pop("_trainctl_indices", None)
        return reset_all(self, *args, **kwargs)

    cls._next_index, cls.__next__, cls._reset = index, batch, reset
