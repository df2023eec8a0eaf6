/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the folders of a tree and stats what is in them, in parallel.
 *
 * A folder is opened by its path below the root's descriptor, its entries are statted by name below its own, so that a
 * million files cost a million short look-ups. A large folder's entries are statted in batches, by several threads.
 * Links are never followed: a folder that turns out not to be the one that was statted (somebody put a link in its
 * place) is an error.
 *
 * An error does not end the walk: of all errors the one whose path comes first is told, and how many there were.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/tree_internal.h"
#include "manifest/tree_queue.h"

enum { BATCH = 512, MAX_FOLDER_PATH = 4096 };

typedef struct walk {
    tctl_tree_job *job;
    tctl_tree_queue queue;
} walk;

/* "folder/name" into the thread's path buffer. Too long a path is cut; it can't be opened anyway. */
static char *join(char *out, const tctl_tree_folder *folder, const char *name)
{
    snprintf(out, TCTL_TREE_PATH, "%s%s%s", folder->path, folder->path_length ? "/" : "", name);
    return out;
}

static TCTL_COLD void fail_node(walk *w, tctl_tree_scratch *s, const tctl_tree_folder *folder,
                                const char *name, tctl_status code, int errnum, const char *what)
{
    tctl_error err;
    const char *path = join(s->path, folder, name);
    char shown[1024];
    tctl_tree_job_shown(w->job, path, shown, sizeof shown);
    if (errnum)
        tctl_fail_errno(&err, errnum, "cannot %s '%s'", what, shown);
    else
        tctl_fail(&err, code, "'%s' %s", shown, what);
    tctl_tree_job_fail(w->job, path, &err);
}

static TCTL_COLD void fail_memory(walk *w, size_t size)
{
    tctl_error err;
    tctl_fail_memory(&err, size);
    tctl_tree_job_fail(w->job, NULL, &err);
}

/* A new folder, known to the job and queued for reading. `path` is relative to the root. */
static tctl_tree_folder *add_folder(walk *w, tctl_arena *arena, const char *path, dev_t device, ino_t inode)
{
    tctl_tree_job *job = w->job;
    tctl_tree_folder *folder = tctl_arena_take(arena, sizeof *folder);
    size_t length = strlen(path);
    char *copy = tctl_arena_copy(arena, path, length);
    bool ok = folder && copy;
    if (ok) {
        *folder = (tctl_tree_folder){
            .path = copy, .path_length = length, .device = device, .inode = inode, .fd = -1};
        pthread_mutex_lock(&job->mutex);
        if (job->n_folders == job->folders_room) {
            size_t room = job->folders_room ? job->folders_room * 2 : 64;
            tctl_tree_folder **larger = realloc(job->folders, room * sizeof *larger);
            ok = larger != NULL;
            if (ok) {
                job->folders = larger;
                job->folders_room = room;
            }
        }
        if (ok)
            job->folders[job->n_folders++] = folder;
        pthread_mutex_unlock(&job->mutex);
    }
    if (!ok || !tctl_tree_queue_push(&w->queue, (tctl_tree_task){folder, 0, 0})) {
        fail_memory(w, sizeof *folder);
        return NULL;
    }
    return folder;
}

void tctl_tree_node_set(tctl_tree_node *node, const struct stat *st)
{
    node->size = (uint64_t)st->st_size;
    node->device = st->st_dev;
    node->inode = st->st_ino;
    node->mtime = st->st_mtim;
    node->ctime = st->st_ctim;
}

void tctl_tree_node_stat(const tctl_tree_node *node, struct stat *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->st_mode = S_IFREG;
    ret->st_size = (off_t)node->size;
    ret->st_dev = node->device;
    ret->st_ino = node->inode;
    ret->st_mtim = node->mtime;
    ret->st_ctim = node->ctime;
}

static void take_file(walk *w, tctl_tree_scratch *s, const tctl_tree_folder *folder, tctl_tree_node *node,
                      const struct stat *st)
{
    tctl_tree_job *job = w->job;
    node->type = st->st_mode & S_IXUSR ? 'x' : 'f';
    if (job->request->cache && tctl_tree_job_key(job, folder->path, folder->path_length, node->name, s->path))
        node->done = tctl_stat_cache_get(job->request->cache, s->path, st, &node->digest);
    atomic_fetch_add_explicit(&job->seen, 1, memory_order_relaxed);
    if (node->done)
        atomic_fetch_add_explicit(&job->cached, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&job->bytes_to_hash, node->size, memory_order_relaxed);
}

static void take_link(walk *w, tctl_tree_scratch *s, const tctl_tree_folder *folder, tctl_tree_node *node)
{
    ssize_t n = readlinkat(folder->fd, node->name, s->path, TCTL_TREE_PATH);
    if (n < 0) {
        fail_node(w, s, folder, node->name, 0, errno, "read the link");
        return;
    }
    tctl_hasher_add(s->hasher, s->path, (size_t)n);
    node->digest = tctl_hasher_finish(s->hasher);
    node->size = (uint64_t)n;
    node->type = 'l';
    node->done = true;
}

static void take_folder(walk *w, tctl_tree_scratch *s, const tctl_tree_folder *folder, tctl_tree_node *node)
{
    if (folder->path_length + node->name_length + 1 >= MAX_FOLDER_PATH) {
        fail_node(w, s, folder, node->name, 0, ENAMETOOLONG, "read folder");
        return;
    }
    const char *path = join(s->path, folder, node->name);
    node->folder = add_folder(w, s->arena, path, node->device, node->inode);
    node->type = 'd';
    node->size = 0;
    node->done = true;
}

static void take_node(walk *w, tctl_tree_scratch *s, const tctl_tree_folder *folder, tctl_tree_node *node)
{
    struct stat st;
    if (fstatat(folder->fd, node->name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            fail_node(w, s, folder, node->name, TCTL_ECHANGED, 0, "disappeared while the folder was read");
        else
            fail_node(w, s, folder, node->name, 0, errno, "stat");
        return;
    }
    tctl_tree_node_set(node, &st);
    if (S_ISREG(st.st_mode))
        take_file(w, s, folder, node, &st);
    else if (S_ISDIR(st.st_mode))
        take_folder(w, s, folder, node);
    else if (S_ISLNK(st.st_mode))
        take_link(w, s, folder, node);
    else
        fail_node(w, s, folder, node->name, TCTL_EINVAL, 0,
                  S_ISFIFO(st.st_mode)   ? "is a FIFO and can't be hashed; remove it or exclude it"
                  : S_ISSOCK(st.st_mode) ? "is a socket and can't be hashed; remove it or exclude it"
                                         : "is a device and can't be hashed; remove it or exclude it");
}

static void take_batch(walk *w, tctl_tree_scratch *s, tctl_tree_folder *folder, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        take_node(w, s, folder, &folder->nodes[i]);
    if (atomic_fetch_sub_explicit(&folder->pending, 1, memory_order_acq_rel) == 1) {
        close(folder->fd);
        folder->fd = -1;
    }
    tctl_tree_job_tell(w->job, false);
}

static bool is_excluded(const tctl_tree_job *job, const tctl_tree_folder *folder, const char *name)
{
    const char *const *exclude = job->request->exclude;
    size_t n = folder->path_length;
    for (; exclude && *exclude; exclude++) {
        const char *rest = *exclude;
        if (n > 0) {
            if (strncmp(rest, folder->path, n) != 0 || rest[n] != '/')
                continue;
            rest += n + 1;
        }
        if (strcmp(rest, name) == 0)
            return true;
    }
    return false;
}

/* Reads all names of the open folder. */
static bool read_names(walk *w, tctl_tree_scratch *s, tctl_tree_folder *folder)
{
    size_t n = 0;
    for (;;) {
        ssize_t got = getdents64(folder->fd, s->buffer, TCTL_TREE_BUFFER);
        if (got < 0) {
            fail_node(w, s, folder, "", 0, errno, "read folder");
            return false;
        }
        if (got == 0)
            break;
        for (ssize_t at = 0; at < got;) {
            /* The kernel aligns the records to 8; the buffer is aligned for any type. */
            const struct dirent64 *entry = (const void *)(s->buffer + at);
            const char *name = entry->d_name;
            at += entry->d_reclen;
            bool self = name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
            if (self || is_excluded(w->job, folder, name))
                continue;
            if (!tctl_tree_scratch_add(s, n, name)) {
                fail_memory(w, n * sizeof *s->nodes);
                return false;
            }
            n++;
        }
    }
    folder->nodes = tctl_arena_take_array(s->arena, n, sizeof *folder->nodes);
    if (!folder->nodes) {
        fail_memory(w, n * sizeof *folder->nodes);
        return false;
    }
    if (n > 0)
        memcpy(folder->nodes, s->nodes, n * sizeof *folder->nodes);
    folder->n = n;
    return true;
}

static bool open_folder(walk *w, tctl_tree_scratch *s, tctl_tree_folder *folder)
{
    struct stat st;
    const char *path = folder->path_length ? folder->path : ".";
    folder->fd = openat(w->job->root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder->fd < 0 || fstat(folder->fd, &st) != 0) {
        fail_node(w, s, folder, "", 0, errno, "open folder");
        return false;
    }
    if (st.st_dev != folder->device || st.st_ino != folder->inode) {
        fail_node(w, s, folder, "", TCTL_ECHANGED, 0, "was replaced while the tree was read");
        return false;
    }
    return true;
}

static void take_folder_task(walk *w, tctl_tree_scratch *s, tctl_tree_folder *folder)
{
    if (!open_folder(w, s, folder) || !read_names(w, s, folder)) {
        if (folder->fd >= 0)
            close(folder->fd);
        return;
    }
    size_t n_batches = folder->n / BATCH + 1;
    atomic_store_explicit(&folder->pending, (unsigned)n_batches, memory_order_relaxed);
    for (size_t i = 1; i < n_batches; i++) {
        size_t begin = i * BATCH, end = begin + BATCH < folder->n ? begin + BATCH : folder->n;
        if (begin == end || !tctl_tree_queue_push(&w->queue, (tctl_tree_task){folder, begin, end}))
            take_batch(w, s, folder, begin, end);
    }
    take_batch(w, s, folder, 0, folder->n < BATCH ? folder->n : BATCH);
}

static void walk_thread(void *arg, uint64_t chunk, uint32_t thread)
{
    walk *w = arg;
    tctl_tree_scratch *s = &w->job->scratch[thread];
    tctl_tree_task task;
    (void)chunk;
    while (tctl_tree_queue_pop(&w->queue, &task)) {
        if (task.begin == task.end)
            take_folder_task(w, s, task.folder);
        else
            take_batch(w, s, task.folder, task.begin, task.end);
        tctl_tree_queue_done(&w->queue);
    }
}

void tctl_tree_walk(tctl_tree_job *job)
{
    walk w = {.job = job};
    struct stat st;
    tctl_tree_queue_init(&w.queue);
    if (fstat(job->root, &st) != 0) {
        tctl_error err;
        tctl_fail_errno(&err, errno, "cannot stat '%s'", job->shown);
        tctl_tree_job_fail(job, NULL, &err);
    } else if (add_folder(&w, job->scratch[0].arena, "", st.st_dev, st.st_ino)) {
        tctl_tree_job_run(job, job->n_threads, walk_thread, &w);
    }
    tctl_tree_queue_release(&w.queue);
}
