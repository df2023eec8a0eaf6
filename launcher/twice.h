/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `run --twice N`: the first N steps twice, before the long run. A flag that promises determinism may lie; only a
 * repetition tells.
 *
 * What makes no trace can't be ended behind a step: it is run whole, twice, and its outputs are compared.
 */
#ifndef TCTL_LAUNCHER_TWICE_H
#define TCTL_LAUNCHER_TWICE_H

#include "launcher/repeat.h"

typedef struct tctl_twice {
    bool differs;
    json_t *verdict;    /* of tctl_classify; NULL unless they differ. Release it */
    const char *reason; /* one sentence, if they differ or one of them failed */
    int stopped;        /* the exit code, above 128, if somebody stopped us; 0 */
} tctl_twice;

/*
 * The repeater's `scratch` is made here, and removed if all is well and it does not keep. TCTL_ECANCELED if somebody
 * stopped us, TCTL_EDETERMINISM if the two differ, TCTL_EIO if one of them failed: *ret says more in each of these
 * cases too.
 */
tctl_status tctl_run_twice(tctl_repeater *, uint64_t steps, tctl_view *, tctl_twice *ret, tctl_error *err);

#endif
