/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From two records of the same work to a verdict: where they part, as early as the evidence goes, and why.
 *
 * Pure: evidence in, verdict out. Nothing is run or opened here; launcher/deep.h gathers more evidence by running again.
 *
 * A program's results come about in an order, and so do the stages that a verdict may name. The first that differs is
 * named, because all behind it may differ in consequence:
 *
 *   code, environment, shared objects, data list, data bytes, first batch, initial weights, forward, gradient,
 *   optimizer, output
 *
 * ("batch" where it is not the first; "training" where a coarse trace leaves open what differed first.) Up to "data
 * bytes" it is what went in that differs: a cause. From there on it is where the work shows it: a place.
 */
#ifndef TCTL_LAUNCHER_CLASSIFY_H
#define TCTL_LAUNCHER_CLASSIFY_H

#include <jansson.h>
#include <stdbool.h>

/*
 * `was` and `is` are manifests, or objects that have some of a manifest's members; a member that only one of them has
 * says nothing. The others may be NULL.
 */
typedef struct tctl_evidence {
    const json_t *was, *is;
    const json_t
        *data; /* inputs that changed: [{"name","change": "list" or "bytes","what"}]; NULL: by `data` */
    const json_t *divergence; /* of tctl_compare_traces */
    const json_t *element;    /* of tctl_content_compare: the divergence's field, from dumps of both */
    const json_t *content;    /* of tctl_content_compare, with the output's "path" */
} tctl_evidence;

/*
 * A new reference; NULL if nothing differs. Members:
 *   stage        as above
 *   why          one sentence
 *   confidence   "certain"; "likely": it differs and comes first, but only a repetition without it would prove that it
 *                is the cause; "unknown": the evidence does not reach that far
 *   causes       [{"stage","what"}] all that differs of what went in, in the order of stages
 *   suspects     ["…"] what both sides did that is known to make results vary
 *   kind, step, after, field, a, b, ulps, fields_differ   of the traces' divergence; null without one
 *   path, tensor, element   of the field that differs (path is null), else of the output; null if not known. Then a, b
 *                and ulps are the element's (ulps beyond 2^53 as decimal text)
 */
json_t *tctl_classify(const tctl_evidence *);

/* "gradient/conv1.weight" → "gradient"; the stage of a trace's field. `is_first`: of the first record. */
const char *tctl_stage_of_field(const char *field, bool is_first, bool is_initial);

#endif
