/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launcher and worker agree on.
 *
 * The launcher starts `trainctl-worker RUN-DIR` with the run directory prepared:
 *   spec.yaml      the spec as given
 *   request.json   {"path","folder","set":[…],"without":[…],"seed","recipe_digest","out","threads"…}
 * and gets back
 *   trace.bin, metrics.jsonl, out/…
 *   worker.json    {"plugins":[{use,name,version,path,sha256,build_id,abi,bits,config}],"shared_objects":[…],
 *                   "peak_memory_bytes","parameters"}  written before the exit
 *   error.json     {"code","message","notes",…}        written if it failed
 * Descriptor 3, if open, takes one JSON object per line for the launcher's eyes only:
 *   {"phase":"create","plugin":PATH} {"progress":WHAT,"done":N,"total":N,"unit":U} {"epoch":…metrics}
 * Exit status: 0 done, 1 failed, 3 spec, 4 plugin, 130 cancelled by SIGINT or SIGTERM.
 */
#ifndef TCTL_HOST_WORKER_H
#define TCTL_HOST_WORKER_H

#define TCTL_WORKER_EVENTS_FD 3

/* Exit codes, of the worker and of trainctl itself; documented in docs/exit-codes.md. */
enum {
    TCTL_EXIT_OK = 0,
    TCTL_EXIT_FAILED = 1,      /* the run failed; verify: differs */
    TCTL_EXIT_USAGE = 2,       /* wrong command line; verify: could not be checked */
    TCTL_EXIT_SPEC = 3,        /* the spec is wrong */
    TCTL_EXIT_PLUGIN = 4,      /* a plugin can't be loaded, or crashed */
    TCTL_EXIT_DETERMINISM = 6, /* the contract asked for can't be kept here */
    TCTL_EXIT_SIGNAL = 128     /* + signal */
};

#endif
