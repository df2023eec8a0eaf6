/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan of raw bytes before libyaml sees them.
 *
 * Refuses what libyaml would take long over (depth, size), what it cannot give a position for (bad UTF-8, NUL,
 * control characters) and what it reads differently from how an editor shows it (look-alike characters, other
 * line breaks, tabs as indentation). Linear in the size, no allocation.
 *
 * It knows quotes, comments, block scalars and flow brackets well enough to leave their contents alone; it does
 * not know YAML. Where it is in doubt it lets things pass: the parser checks depth, nodes and scalar length once
 * more, exactly, event by event.
 */
#ifndef TCTL_CONFIG_PRESCAN_H
#define TCTL_CONFIG_PRESCAN_H

#include "config/diag.h"

/* TCTL_ESPEC if something was added to `diags`. */
tctl_status tctl_prescan(const char *name, const char *text, size_t size, tctl_diags *diags);

#endif
