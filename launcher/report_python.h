/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Python shim reported: report/python.jsonl of an attempt, made into members of the manifest.
 *
 * The file was written by the child, so it may hold anything: lines that are not what the shim writes are counted and
 * left out. Limits: MiBs, lines and text lengths below; what is beyond is counted as malformed.
 */
#ifndef TCTL_LAUNCHER_REPORT_PYTHON_H
#define TCTL_LAUNCHER_REPORT_PYTHON_H

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * From the text of a report: {"processes": n, "versions": [text, sorted], "settings": {name: value}, "notes": [{"what",
 * "detail", "file", "line"}], "malformed": n}. What could not be controlled is appended to `uncontrolled`, [{"what",
 * "why"}], unless it is there. A new reference in *ret. TCTL_ENOMEM only.
 */
tctl_status tctl_report_python_parse(const char *text, size_t size, json_t *uncontrolled, json_t **ret,
                                     tctl_error *err);

/*
 * The same from <folder>/report/python.jsonl; *ret is NULL if no Python process reported. `interposer`, the manifest's
 * member or NULL, tells how many Python programs there were: those that did not report are uncontrolled.
 */
tctl_status tctl_report_python_read(tctl_arena *, const char *folder, const json_t *interposer,
                                    json_t *uncontrolled, json_t **ret, tctl_error *err);

#endif
