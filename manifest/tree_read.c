/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and hashes the files of a tree that the cache does not know.
 *
 * One file is one thread's: SHA-256 has no parallel form that others would understand. Large files go first, largest
 * first, so that no thread is left alone with one at the end; small ones follow in the tree's order, in which they
 * were likely written. A small file costs open, read, fstat, close.
 *
 * The file must be, after it was read, what the walk saw before: same inode, size and times. Otherwise the digest is
 * of no state that the file ever had.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/tree_internal.h"

#define LARGE ((uint64_t)1 << 20)

typedef struct reading {
    tctl_tree_job *job;
    tctl_tree_todo *todo;
} reading;

static int open_file(tctl_tree_job *job, const char *path)
{
    /* Non-blocking, in case a FIFO has taken the file's place. */
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    if (!atomic_load_explicit(&job->no_noatime, memory_order_relaxed)) {
        int fd = openat(job->root, path, flags | O_NOATIME);
        if (fd >= 0 || errno != EPERM)
            return fd;
        /* Only the owner may leave the access time alone. */
        atomic_store_explicit(&job->no_noatime, true, memory_order_relaxed);
    }
    return openat(job->root, path, flags);
}

static tctl_status changed(const char *shown, tctl_error *err)
{
    tctl_fail(err, TCTL_ECHANGED, "'%s' changed while it was hashed", shown);
    tctl_hint(err, "let whatever writes it finish, then hash again");
    return TCTL_ECHANGED;
}

static tctl_status check_same(int fd, const char *shown, const tctl_tree_node *node, uint64_t size,
                              tctl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return tctl_fail_errno(err, errno, "cannot stat '%s'", shown);
    bool same = S_ISREG(st.st_mode) && st.st_dev == node->device && st.st_ino == node->inode &&
                (uint64_t)st.st_size == node->size && size == node->size &&
                st.st_mtim.tv_sec == node->mtime.tv_sec && st.st_mtim.tv_nsec == node->mtime.tv_nsec &&
                st.st_ctim.tv_sec == node->ctime.tv_sec && st.st_ctim.tv_nsec == node->ctime.tv_nsec;
    return same ? TCTL_OK : changed(shown, err);
}

/* Hashes up to the end of the file, or one byte beyond the size that it should have. */
static tctl_status hash_content(tctl_tree_job *job, tctl_tree_scratch *s, int fd, const char *shown,
                                uint64_t expected, uint64_t *ret_size, tctl_error *err)
{
    uint64_t size = 0;
    if (expected >= LARGE)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    while (size < expected || (expected == 0 && size == 0)) {
        ssize_t n = read(fd, s->buffer, TCTL_TREE_BUFFER);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tctl_fail_errno(err, errno, "cannot read '%s'", shown);
        if (n == 0)
            break;
        tctl_hasher_add(s->hasher, s->buffer, (size_t)n);
        size += (uint64_t)n;
        atomic_fetch_add_explicit(&job->bytes_hashed, (uint64_t)n, memory_order_relaxed);
        if (expected >= LARGE)
            tctl_tree_job_tell(job, false);
        if (atomic_load_explicit(&job->failed, memory_order_relaxed))
            return TCTL_ECANCELED; /* another file has failed; that is what will be told */
    }
    *ret_size = size;
    return TCTL_OK;
}

static tctl_status hash_file(tctl_tree_job *job, tctl_tree_scratch *s, const tctl_tree_todo *todo,
                             tctl_error *err)
{
    char shown[1024];
    uint64_t size = 0;
    const char *path = todo->entry->path;
    tctl_tree_job_shown(job, path, shown, sizeof shown);
    int fd = open_file(job, path);
    if (fd < 0 && (errno == ENOENT || errno == ELOOP))
        return changed(shown, err);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '%s'", shown);
    tctl_status status = hash_content(job, s, fd, shown, todo->node->size, &size, err);
    if (status == TCTL_OK) {
        todo->entry->digest = tctl_hasher_finish(s->hasher);
        status = check_same(fd, shown, todo->node, size, err);
    }
    close(fd);
    return status;
}

static void remember(tctl_tree_job *job, tctl_tree_scratch *s, const tctl_tree_todo *todo)
{
    const char *path = todo->entry->path;
    if (!job->request->cache || !tctl_tree_job_key(job, path, strlen(path), "", s->path))
        return;
    struct stat st;
    tctl_tree_node_stat(todo->node, &st);
    tctl_stat_cache_put_at(job->request->cache, s->path, &st, job->looked, &todo->entry->digest);
}

static void hash_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    const reading *r = arg;
    tctl_tree_job *job = r->job;
    if (atomic_load_explicit(&job->failed, memory_order_relaxed))
        return;
    tctl_error err;
    const tctl_tree_todo *todo = &r->todo[chunk];
    tctl_status status = hash_file(job, &job->scratch[thread], todo, &err);
    if (status != TCTL_OK) {
        if (status != TCTL_ECANCELED)
            tctl_tree_job_fail(job, todo->entry->path, &err);
        return;
    }
    remember(job, &job->scratch[thread], todo);
    atomic_fetch_add_explicit(&job->hashed, 1, memory_order_relaxed);
    tctl_tree_job_tell(job, false);
}

/* Large before small; large ones by size, small ones in the order of the tree (that of `entry`, an array). */
static int compare(const void *a, const void *b)
{
    const tctl_tree_todo *x = a, *y = b;
    uint64_t p = x->node->size >= LARGE ? x->node->size : 0, q = y->node->size >= LARGE ? y->node->size : 0;
    if (p != q)
        return p > q ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

void tctl_tree_read(tctl_tree_job *job, tctl_tree_todo *todo, size_t n)
{
    reading r = {job, todo};
    qsort(todo, n, sizeof *todo, compare);
    tctl_tree_job_run(job, n, hash_chunk, &r);
}
