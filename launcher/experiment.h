/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spec that was read for good: with its plugins loaded and its recipe digested.
 */
#ifndef TCTL_LAUNCHER_EXPERIMENT_H
#define TCTL_LAUNCHER_EXPERIMENT_H

#include "config/spec.h"
#include "host/plugins.h"
#include "launcher/command.h"
#include "manifest/digest.h"

typedef struct tctl_experiment {
    tctl_plugins *plugins;
    tctl_spec *spec;
    tctl_sha256 recipe_digest;
} tctl_experiment;

/* Reads the spec. Returns TCTL_EXIT_OK; else everything that is wrong was printed (with --json also to standard output,
 * as {"state":"failed","errors":[…]}) and the exit code is returned. Release it in any case. */
int tctl_experiment_load(const tctl_command_line *, const tctl_spec_request *, bool json,
                         tctl_experiment *ret);
void tctl_experiment_release(tctl_experiment *);

/* "exact", "machine", "off". */
const char *tctl_contract_name(int32_t contract);

/* The real path of the running program, from the arena. */
tctl_status tctl_program_path(tctl_arena *, const char **ret, tctl_error *err);

#endif
