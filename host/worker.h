/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launcher and worker agree on.
 *
 * The launcher starts `trainctl-worker RUN-DIR` with the run directory prepared:
 *   spec.yaml      the spec's bytes as the launcher read them
 *   request.json   {"path": PATH,            the spec's path as the user gave it: for messages
 *                   "folder": FOLDER,        absolute; relative paths of the spec start here
 *                   "set": ["a.b=c",…], "without": ["NAME",…], "seed": "7" or null (of --seed),
 *                   "trace": {"every": "1", "stop": "12", "dump": "12"},   may lack: what verify wants to see of the
 *                                            trace, beyond the spec: records of every so many steps, the last step, and
 *                                            one whose tensors are written to dump-12/<field>.npy
 *                   "recipe_digest": HEX,    SHA-256 of the recipe's canonical JSON: the worker must find the same
 *                   "out": FOLDER}           absolute, exists
 *                  Resources that the command line changes are in "set" ("resources.threads=2").
 * The worker's standard error is its log. It writes into the run directory
 *   trace.bin, metrics.jsonl   as the run goes; out/… through the artifact service. Files that are being written
 *                              lie in partial/ until they are whole
 *   worker.json    before it ends, also after a failure where it got so far:
 *                  {"plugins": [{"use","name","version","license","path","sha256","build_id" or null,"abi": "1.0",
 *                                "bits": "same" or "recipe","claims": ["runs",…]}],      in the order of loading
 *                   "stages": [{"name","plugin","role": "data.train","config": {…}}],  every `use:`, defaults expanded
 *                   "shared_objects": […],   of manifest/environment.h
 *                   "memory": {"peak_resident_bytes","peak_service_bytes"}}
 *   error.json     if it failed, or if the run can't be trusted:
 *                  {"code": -7, "status": "plugin failed", "message","notes": […],"hint","file","line","column",
 *                   "rendered": TEXT}        as a person sees it, without colours
 * Descriptor 3, if open, takes one JSON object per line for the launcher's eyes only:
 *   {"phase": PHASE, "plugin": WHO}   before code of a plugin runs: PHASE is "load" (WHO a path), "create", "run" or
 *                                     "destroy" (WHO "name (plugin 'x')"). If the worker dies, this is where
 *   {"progress": WHAT, "done": N, "total": N, "unit": U}
 *   {"metrics": {"epoch","step","values": {…},"timings": {…}}}   the line that went to metrics.jsonl
 * A line of metrics.jsonl: {"epoch": 1, "step": 469, "timings": {…}, "values": {"train_loss": 0.5, …}}, canonical JSON;
 * a value that is not finite is the text "NaN", "Infinity" or "-Infinity". Timings are no results.
 * Exit status: 0 done, 1 failed, 3 spec, 4 plugin, 6 determinism, 128 + signal when cancelled by SIGINT or SIGTERM.
 * The first of these signals asks, the second ends the process at once.
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
