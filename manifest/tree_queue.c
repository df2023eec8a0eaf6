/* SPDX-License-Identifier: Apache-2.0 */
/* See tree_queue.h. */
#include "manifest/tree_queue.h"

#include <stdlib.h>

void tctl_tree_queue_init(tctl_tree_queue *q)
{
    *q = (tctl_tree_queue){.tasks = NULL};
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->changed, NULL);
}

void tctl_tree_queue_release(tctl_tree_queue *q)
{
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->mutex);
    free(q->tasks);
}

static bool grow(tctl_tree_queue *q)
{
    size_t room = q->room ? q->room * 2 : 256;
    tctl_tree_task *tasks = realloc(q->tasks, room * sizeof *tasks);
    if (!tasks)
        return false;
    q->tasks = tasks;
    q->room = room;
    return true;
}

bool tctl_tree_queue_push(tctl_tree_queue *q, tctl_tree_task task)
{
    pthread_mutex_lock(&q->mutex);
    bool ok = q->n < q->room || grow(q);
    if (ok) {
        q->tasks[q->n++] = task;
        pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->mutex);
    return ok;
}

bool tctl_tree_queue_pop(tctl_tree_queue *q, tctl_tree_task *ret)
{
    pthread_mutex_lock(&q->mutex);
    while (q->n == 0 && q->n_working > 0)
        pthread_cond_wait(&q->changed, &q->mutex);
    bool got = q->n > 0;
    if (got) {
        *ret = q->tasks[--q->n];
        q->n_working++;
    }
    pthread_mutex_unlock(&q->mutex);
    return got;
}

void tctl_tree_queue_done(tctl_tree_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    if (--q->n_working == 0 && q->n == 0)
        pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
}
