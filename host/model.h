/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model graph behind trainctl/model.h: built from the operators of a spec, changed through the service.
 *
 * The model owns copies of all names, texts and attributes; the `config` of a node is borrowed from the spec, which
 * must outlive the model. Invariants: a node's inputs stand before it; names are unique; a change either happens
 * whole or, with an error, not at all. What operators mean is the trainer's business: nothing here knows them.
 * [main]
 */
#ifndef TCTL_HOST_MODEL_H
#define TCTL_HOST_MODEL_H

#include "base/error.h"
#include "config/spec.h"
#include "trainctl/model.h"

/*
 * The graph of `spec->ops`. Every option that has a value, written or default, becomes an attribute: BOOL, INT and
 * SIZE an integer, REAL and DURATION (seconds) a real, TEXT, ENUM and PATH a text, COUNT an integer and, as text,
 * its unit. The values of a REPEATED option are attributes of one name, in order. TCTL_ESPEC with a position for a
 * name used twice, an input that does not stand before its reader, or a type that an operator can't have (PLUGIN).
 */
tctl_status tctl_model_from_spec(const tctl_spec *spec, tctl_model **ret, tctl_error *err);

/* A model without nodes, for tests and embedding programs. */
tctl_status tctl_model_create(tctl_model **ret, tctl_error *err);

void tctl_model_destroy(tctl_model *); /* NULL is fine */

/* The service TCTL_MODEL_ID. Lives as long as the process. [any] */
const tctl_model_service *tctl_model_service_of(void);

#endif
