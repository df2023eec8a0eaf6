/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of launcher/classify*.c share. */
#ifndef TCTL_LAUNCHER_CLASSIFY_INTERNAL_H
#define TCTL_LAUNCHER_CLASSIFY_INTERNAL_H

#include "launcher/classify.h"

/* Members of both records, under one name; false if one lacks it. */
bool tctl_evidence_both(const tctl_evidence *, const char *key, const json_t **was, const json_t **is);

/* [{"stage","what"}] in the order of stages. A new reference. */
json_t *tctl_classify_causes(const tctl_evidence *);

#endif
