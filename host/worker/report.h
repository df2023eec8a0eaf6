/* SPDX-License-Identifier: Apache-2.0 */
/* worker.json and error.json, as host/worker.h describes them. */
#ifndef TCTL_HOST_WORKER_REPORT_H
#define TCTL_HOST_WORKER_REPORT_H

#include "config/spec.h"
#include "host/plugins.h"
#include "host/services.h"

typedef struct tctl_worker_report {
    const char *run;
    const tctl_plugins *plugins;   /* NULL: none yet */
    const tctl_spec *spec;         /* NULL: not read; its text makes excerpts */
    const tctl_services *services; /* NULL: none yet */
} tctl_worker_report;

/* RUN/worker.json. */
tctl_status tctl_worker_report_write(const tctl_worker_report *, tctl_error *err);

/* RUN/error.json: of `diags` if it has errors, else of `failure`. If it cannot be written, the words go to standard
 * error. */
void tctl_worker_report_error(const tctl_worker_report *, const tctl_error *failure, tctl_diags *diags);

#endif
