/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of tasks that make more tasks. Last in, first out: a tree is walked depth first, which bounds the number of
 * tasks that wait. Only for tree_walk.c.
 */
#ifndef TCTL_MANIFEST_TREE_QUEUE_H
#define TCTL_MANIFEST_TREE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tctl_tree_folder tctl_tree_folder;

typedef struct tctl_tree_task {
    tctl_tree_folder *folder;
    size_t begin, end; /* entries to stat; both 0: read the folder first */
} tctl_tree_task;

typedef struct tctl_tree_queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    tctl_tree_task *tasks;
    size_t n, room;
    uint32_t n_working;
} tctl_tree_queue;

void tctl_tree_queue_init(tctl_tree_queue *);
void tctl_tree_queue_release(tctl_tree_queue *);
/* False if memory is out. */
bool tctl_tree_queue_push(tctl_tree_queue *, tctl_tree_task);
/* Takes a task; waits while there is none but one may still come. False once all work is done. */
bool tctl_tree_queue_pop(tctl_tree_queue *, tctl_tree_task *ret);
/* To be called once for each task that was taken, after it pushed what it had to. */
void tctl_tree_queue_done(tctl_tree_queue *);

#endif
