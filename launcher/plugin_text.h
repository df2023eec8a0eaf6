/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a plugin (host/describe.h) as text for people, and as the beginning of a spec. */
#ifndef TCTL_LAUNCHER_PLUGIN_TEXT_H
#define TCTL_LAUNCHER_PLUGIN_TEXT_H

#include <jansson.h>

#include "base/buf.h"

/* What `trainctl plugins NAME` prints. */
void tctl_plugin_text(const json_t *plugin, tctl_buf *ret);
/* `use:` and every option, the optional ones commented out with their defaults. */
void tctl_plugin_yaml(const json_t *plugin, tctl_buf *ret);
/* "source, state" for ["trainctl.source/1","trainctl.state/1"]. */
void tctl_plugin_provides(const json_t *plugin, tctl_buf *ret);

#endif
