/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the interposer wrote into <attempt>/report/interposer.jsonl (seed/interpose/report.c has the format), as
 * members of a manifest.
 *
 * The file was written by processes of the run, so it may hold anything: a line that is not understood is counted and
 * left out, everything is limited, and nothing in it is used but to be shown and to hash files that are named.
 */
#ifndef TCTL_LAUNCHER_REPORT_INTERPOSER_H
#define TCTL_LAUNCHER_REPORT_INTERPOSER_H

#include <jansson.h>

#include "base/error.h"
#include "manifest/stat_cache.h"

typedef struct tctl_interposer_report {
    json_t *interposer;   /* the manifest's member */
    json_t *uncontrolled; /* [{"what","why"}] */
    json_t
        *objects; /* [{"path","build_id","identity":[device, inode, size, s, ns]}], for the next function */
} tctl_interposer_report;

/* Fails only for want of memory. Release *ret. */
tctl_status tctl_interposer_report_parse(const char *text, size_t size, tctl_interposer_report *ret,
                                         tctl_error *err);
/* The same from the file. One that is missing, too large or unreadable is a report that says so. */
tctl_status tctl_interposer_report_read(const char *path, tctl_interposer_report *ret, tctl_error *err);
void tctl_interposer_report_release(tctl_interposer_report *);

/* A folder that is another one when the run is repeated, and what stands for it in paths. */
typedef struct tctl_object_place {
    const char *folder; /* absolute, without a slash at its end; NULL ends a list */
    const char *name;   /* "$FOLDER" */
} tctl_object_place;

/* The member "shared_objects": each object once, sorted by path, hashed through the cache (which may be NULL), without
 * the interposer itself. A file that is not the one that was loaded has "replaced" and no digest. A new reference;
 * NULL if memory is out. */
json_t *tctl_interposer_shared_objects(const tctl_interposer_report *, const tctl_object_place *,
                                       tctl_stat_cache *);

#endif
