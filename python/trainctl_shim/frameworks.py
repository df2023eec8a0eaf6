# SPDX-License-Identifier: Apache-2.0
"""Frameworks of deep learning: each is prepared when the script has imported it, and only then.

A setting is a line in a list: its name, and a function that makes it. One that this version lacks is reported as
uncontrolled; the others are made all the same.
"""
import os

from . import processes, report, streams


def make(settings) -> None:
    """Makes each of [(name, value, function)], reports what was made and what could not be."""
    for name, value, function in settings:
        try:
            function()
        except Exception as error:  # another version: the name, or what it takes, is another
            report.uncontrolled(name, "%s: %s" % (type(error).__name__, error))
        else:
            report.setting(name, value)


def _at(owner, path: str):
    for part in path.split(".") if path else ():
        owner = getattr(owner, part)
    return owner


def _attribute(owner, path: str, value):
    """A function that assigns an attribute which must exist: a new name would have no effect."""
    def assign():
        folder, _, name = path.rpartition(".")
        at = _at(owner, folder)
        getattr(at, name)
        setattr(at, name, value)
    return assign


def _threads() -> int:
    """Of the resources; 0 if the envelope does not pin them."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdigit() else 0


def version_of(module) -> tuple:
    """(1, 13) of "1.13.0a0+git"; (0, 0) if it can't be read."""
    parts = str(getattr(module, "__version__", "")).split("+")[0].split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return 0, 0


# ---- PyTorch -------------------------------------------------------------------------------------------------------


def prepare_torch(torch) -> None:
    report.setting("torch", torch.__version__)
    version = version_of(torch)
    if version < (1, 13):
        report.uncontrolled("torch", "version %s is older than any that was tried (1.13)" % torch.__version__)
    if version >= (3, 0) or version == (0, 0):
        report.uncontrolled("torch", "version %s is newer than any that was tried" % torch.__version__)
    make(_torch_settings(torch, version))


def seed_torch(torch) -> None:
    """A forked child would draw its parent's numbers. Where the script has chosen the seed it may want just that."""
    make([("torch.manual_seed", "seeded", lambda: torch.manual_seed(streams.mine("torch")))])
    ours = [streams.mine("torch")]

    def reseed():
        if torch.default_generator.initial_seed() == ours[0]:
            ours[0] = streams.mine("torch")
            torch.default_generator.manual_seed(ours[0])

    processes.after_fork(reseed)


def _torch_settings(torch, version: tuple) -> list:
    def assign(path, value):
        return "torch." + path, value, _attribute(torch, path, value)

    def call(path, *arguments):
        return "torch." + path, ", ".join(map(str, arguments)), lambda: _at(torch, path)(*arguments)

    settings = [
        call("use_deterministic_algorithms", True),  # warn_only is off: it lets attention run undetermined
        assign("backends.cudnn.benchmark", False),
        assign("backends.cudnn.deterministic", True),
        # The older names: they work in every version, and reading them after the newer ones were set is an error.
        assign("backends.cudnn.allow_tf32", False),
        assign("backends.cuda.matmul.allow_tf32", False),
        assign("backends.cuda.matmul.allow_fp16_reduced_precision_reduction", False),
        call("set_flush_denormal", False),
    ]
    if version >= (2, 0):
        settings += [
            assign("backends.cuda.matmul.allow_bf16_reduced_precision_reduction", False),
            call("backends.cuda.enable_flash_sdp", False),
            call("backends.cuda.enable_mem_efficient_sdp", False),
            call("backends.cuda.enable_math_sdp", True),
        ]
    if version >= (2, 2):
        settings.append(assign("utils.deterministic.fill_uninitialized_memory", True))
    if version >= (2, 5):
        settings.append(call("backends.cuda.enable_cudnn_sdp", False))
    threads = _threads()  # their number decides the order of sums, and OpenMP's variable does not reach every build
    return settings + ([call("set_num_threads", threads)] if threads else [])


def prepare_inductor(config) -> None:
    """torch.compile chooses kernels by timing them; each of these is a way in which it does."""
    wanted = (("max_autotune", False), ("max_autotune_gemm", False), ("max_autotune_pointwise", False),
              ("coordinate_descent_tuning", False), ("benchmark_fusion", False))
    make([("torch._inductor.config." + name, value, _attribute(config, name, value)) for name, value in wanted])


# ---- TensorFlow, JAX -----------------------------------------------------------------------------------------------


def prepare_tensorflow(tf) -> None:
    report.setting("tensorflow", getattr(tf, "__version__", "?"))
    make([("tensorflow.config.experimental.enable_op_determinism", True,
           lambda: tf.config.experimental.enable_op_determinism())] + _tensorflow_threads(tf))


def seed_tensorflow(tf) -> None:
    make([("tensorflow.random.set_seed", "seeded", lambda: tf.random.set_seed(streams.mine("tensorflow", 32)))])


def _tensorflow_threads(tf) -> list:
    threads = _threads()
    if not threads:
        return []
    threading = "tensorflow.config.threading."
    return [(threading + "set_intra_op_parallelism_threads", threads,
             lambda: tf.config.threading.set_intra_op_parallelism_threads(threads)),
            (threading + "set_inter_op_parallelism_threads", 1,
             lambda: tf.config.threading.set_inter_op_parallelism_threads(1))]


def prepare_jax(jax) -> None:
    """JAX has no hidden generator; what one of its keys gives depends on these two, which are recorded as they are."""
    report.setting("jax", getattr(jax, "__version__", "?"))
    make([("jax_default_matmul_precision", "highest",
           lambda: jax.config.update("jax_default_matmul_precision", "highest"))])
    for name in ("jax_threefry_partitionable", "jax_default_prng_impl"):
        try:
            report.setting(name, getattr(jax.config, name))
        except Exception as error:
            report.uncontrolled(name, "%s: %s" % (type(error).__name__, error))
