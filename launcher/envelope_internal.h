/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the envelope share. */
#ifndef TCTL_LAUNCHER_ENVELOPE_INTERNAL_H
#define TCTL_LAUNCHER_ENVELOPE_INTERNAL_H

#include <jansson.h>
#include <sys/resource.h>

/* The child's limit: at least Linux' default, at most what is permitted; a larger one of the user's stays, for programs
 * that need it. With the record of an earlier envelope, the one that is recorded. */
struct rlimit tctl_envelope_stack_limit(const json_t *recorded);

/* The soft limits of this process, with the child's stack and core dumps: {name: "8388608" or "unlimited"}. */
json_t *tctl_envelope_limits_json(const struct rlimit *stack);

#endif
