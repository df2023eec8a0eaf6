# SPDX-License-Identifier: Apache-2.0
"""What `trainctl run` puts into every Python process of a command: seeds, deterministic libraries, a record of both.

Nothing is imported here that the script does not import: each library is prepared right after the script has imported it
(`hooks`). Everything that was set, and everything that could not be, is appended to `$TRAINCTL_REPORT/python.jsonl`.
Pure Python 3.9 and later, without dependencies. docs/determinism.md is the long form.
"""


# Who prepares which module of the script, in this order; and the knob that asks for it.
_ON_IMPORT = (
    ("python_seeds", "random", "seed_python.seed_random"),
    ("python_seeds", "numpy.random.bit_generator", "seed_python.patch_entropy"),
    ("python_seeds", "numpy.random", "seed_python.seed_numpy"),
    ("python_seeds", "torch", "frameworks.seed_torch"),
    ("python_seeds", "torch.utils.data.dataloader", "loader.prepare"),
    ("python_seeds", "tensorflow", "frameworks.seed_tensorflow"),
    ("torch", "torch", "frameworks.prepare_torch"),
    ("torch", "torch._inductor.config", "frameworks.prepare_inductor"),
    ("torch", "tensorflow", "frameworks.prepare_tensorflow"),
    ("torch", "jax", "frameworks.prepare_jax"),
    ("state_check", "random", "state_check.watch_random"),
    ("state_check", "numpy.random", "state_check.watch_numpy"),
    ("state_check", "torch", "state_check.start"),
    ("trace", "torch", "trace.start"),
)


def start() -> None:
    """Prepares this process. Does nothing outside a run."""
    from . import hooks, knobs, processes, report
    if not knobs.is_run() or not knobs.is_on("python"):
        return
    report.start()
    processes.start()
    for knob, module, function in _ON_IMPORT:
        if knobs.is_on(knob):
            hooks.on_import(module, function)
