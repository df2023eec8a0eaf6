/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting names by bytes, fast enough that a program which opens each of the files does not notice.
 */
#ifndef TCTL_SEED_INTERPOSE_DIRECTORY_SORT_H
#define TCTL_SEED_INTERPOSE_DIRECTORY_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tctl_sort_item {
    size_t at;    /* where its entry begins, in bytes */
    uint64_t key; /* the sort's own */
} tctl_sort_item;

enum { TCTL_SORT_SLACK = 8 };

/* Sorts by the NUL-ended names that stand `name` bytes behind the start of each entry; TCTL_SORT_SLACK bytes behind the
 * last one can be read, whatever they are. False if memory is out; the order is then as before. */
bool tctl_sort_names(const char *bytes, size_t name, tctl_sort_item *items, size_t n);

#endif
