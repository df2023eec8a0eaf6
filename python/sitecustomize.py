# SPDX-License-Identifier: Apache-2.0
"""Starts the shim in a Python process of a run, then makes way for the `sitecustomize` that would have been found.

Python imports the first `sitecustomize` on its path, and the envelope puts this folder in front. Nothing here may keep a
script from running: whatever goes wrong is reported and the process goes on.
"""
import sys


def _start():
    try:
        import trainctl_shim
        trainctl_shim.start()
    except BaseException as error:  # a script must not notice
        try:
            from trainctl_shim import report
            report.uncontrolled("python", "the shim did not start: %s: %s" % (type(error).__name__, error))
        except BaseException:
            pass


def _chain():
    """Imports the next `sitecustomize` under its own name, as Python would have without us."""
    import os
    here = os.path.dirname(os.path.abspath(__file__))
    path = list(sys.path)
    me = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [p for p in path if os.path.abspath(p or ".") != here]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = me
    finally:  # a chained one may have changed the path; ours goes back to where it was
        changed = [p for p in sys.path if p not in path]
        sys.path[:] = path + changed


_start()
_chain()
