/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a plugin in a process of its own, so that one that crashes is an error and not the end.
 */
#ifndef TCTL_LAUNCHER_INSPECT_H
#define TCTL_LAUNCHER_INSPECT_H

#include <jansson.h>

#include "base/error.h"
#include "host/plugins.h"

/* The plugins that this program finds. */
tctl_status tctl_inspect_plugins(tctl_plugins **ret, tctl_error *err);

/* What host/describe.h says of a plugin, a new reference. `folder` (absolute) is where a relative path starts. Errors
 * are those of tctl_plugins_load; TCTL_EPLUGIN if the process died. */
tctl_status tctl_inspect(tctl_plugins *, const char *use, const char *folder, json_t **ret, tctl_error *err);

#endif
