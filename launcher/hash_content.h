/* SPDX-License-Identifier: Apache-2.0 */
/* trainctl hash --content, beside cmd_hash.c. */
#ifndef TCTL_LAUNCHER_HASH_CONTENT_H
#define TCTL_LAUNCHER_HASH_CONTENT_H

#include "launcher/command.h"

/* `trainctl hash --content FILE...`; the exit code. */
int tctl_hash_contents(tctl_command_line *);

#endif
