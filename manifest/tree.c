/* SPDX-License-Identifier: Apache-2.0 */
/* See tree.h and tree_internal.h. */
#include "manifest/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "manifest/tree_internal.h"

#define HEADER      "trainctl-tree 1" /* with its NUL */
#define TELL_EVERY  INT64_C(100000000)
#define FLUSH_EVERY INT64_C(5000000000)

/* ---- the job ---------------------------------------------------------------------------------------- */

void tctl_tree_job_fail(tctl_tree_job *job, const char *path, const tctl_error *err)
{
    pthread_mutex_lock(&job->mutex);
    bool first = job->n_errors++ == 0;
    if (first || (job->error_path && (!path || strcmp(path, job->error_path) < 0))) {
        free(job->error_path);
        job->error_path = path ? strdup(path) : NULL;
        job->error = *err;
    }
    pthread_mutex_unlock(&job->mutex);
    atomic_store_explicit(&job->failed, true, memory_order_relaxed);
}

void tctl_tree_job_shown(const tctl_tree_job *job, const char *path, char *out, size_t size)
{
    if (job->single)
        path = "";
    size_t n = strlen(job->shown);
    bool slash = path[0] != '\0' && n > 0 && job->shown[n - 1] != '/';
    snprintf(out, size, "%s%s%s", job->shown, slash ? "/" : "", path);
    /* The name of a folder that is being read ends in '/'. */
    n = strlen(out);
    if (n > 1 && out[n - 1] == '/' && path[0] != '\0')
        out[n - 1] = '\0';
}

bool tctl_tree_job_key(const tctl_tree_job *job, const char *path, size_t path_length, const char *name,
                       char *out)
{
    size_t root = strlen(job->absolute), name_length = strlen(name), at = root;
    if (root + path_length + name_length + 3 > TCTL_TREE_PATH)
        return false;
    memcpy(out, job->absolute, root);
    if (path_length > 0) {
        out[at++] = '/';
        memcpy(out + at, path, path_length);
        at += path_length;
    }
    if (name_length > 0) {
        out[at++] = '/';
        memcpy(out + at, name, name_length);
        at += name_length;
    }
    out[at] = '\0';
    return true;
}

static int64_t monotonic(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void tctl_tree_job_tell(tctl_tree_job *job, bool now)
{
    const tctl_tree_progress *progress = job->request->progress;
    if ((!progress && !job->request->cache) ||
        atomic_flag_test_and_set_explicit(&job->telling, memory_order_acquire))
        return;
    int64_t time = monotonic();
    if (progress && (now || time - job->told >= TELL_EVERY)) {
        job->told = time;
        progress->update(progress->impl, atomic_load(&job->seen), atomic_load(&job->cached),
                         atomic_load(&job->hashed), atomic_load(&job->bytes_hashed),
                         atomic_load(&job->bytes_to_hash));
    }
    /* Hours of hashing should survive an interruption. What can't be written now is written, or given up, on closing. */
    if (time - job->flushed >= FLUSH_EVERY) {
        job->flushed = time;
        (void)tctl_stat_cache_flush(job->request->cache, NULL);
    }
    atomic_flag_clear_explicit(&job->telling, memory_order_release);
}

void tctl_tree_job_run(tctl_tree_job *job, uint64_t n_chunks, tctl_chunk_fn *fn, void *arg)
{
    if (job->request->pool) {
        tctl_pool_run(job->request->pool, n_chunks, fn, arg);
        return;
    }
    for (uint64_t i = 0; i < n_chunks; i++)
        fn(arg, i, 0);
}

static tctl_status job_init(tctl_tree_job *job, const char *path, const tctl_tree_request *request,
                            tctl_error *err)
{
    *job = (tctl_tree_job){.request = request, .shown = path, .root = -1, .looked = tctl_stat_cache_now()};
    pthread_mutex_init(&job->mutex, NULL);
    atomic_flag_clear(&job->telling);
    job->told = job->flushed = monotonic();
    job->n_threads = request->pool ? tctl_pool_threads(request->pool) : 1;
    return tctl_tree_scratch_create(job->n_threads, &job->scratch, err);
}

static void job_release(tctl_tree_job *job)
{
    tctl_tree_scratch_destroy(job->scratch, job->n_threads);
    free(job->folders);
    free(job->error_path);
    if (job->root >= 0)
        close(job->root);
    pthread_mutex_destroy(&job->mutex);
}

static tctl_status job_status(const tctl_tree_job *job, tctl_error *err)
{
    if (job->n_errors == 0)
        return TCTL_OK;
    if (err)
        *err = job->error;
    if (job->n_errors > 1)
        tctl_note(err, "and %llu more of its entries can't be hashed",
                  (unsigned long long)(job->n_errors - 1));
    return job->error.code;
}

/* ---- order ------------------------------------------------------------------------------------------ */

static bool is_empty_folder(const tctl_tree_node *node)
{
    return node->type == 'd' && node->folder && node->folder->n == 0;
}

/*
 * Sorts a folder's entries so that visiting them in this order, folders in depth, gives all paths in the order of their
 * bytes: a folder with entries sorts as its name and '/', which is what stands behind it in their paths.
 */
static int compare_nodes(const void *a, const void *b)
{
    const tctl_tree_node *x = a, *y = b;
    uint32_t n = x->name_length < y->name_length ? x->name_length : y->name_length;
    int order = memcmp(x->name, y->name, n);
    if (order != 0)
        return order;
    unsigned char p = (unsigned char)x->name[n], q = (unsigned char)y->name[n];
    if (p == 0 && x->type == 'd' && !is_empty_folder(x))
        p = '/';
    if (q == 0 && y->type == 'd' && !is_empty_folder(y))
        q = '/';
    return (p > q) - (p < q);
}

static void sort_folder(void *arg, uint64_t chunk, uint32_t thread)
{
    const tctl_tree_job *job = arg;
    (void)thread;
    tctl_tree_folder *folder = job->folders[chunk];
    if (folder->n > 1)
        qsort(folder->nodes, folder->n, sizeof *folder->nodes, compare_nodes);
}

typedef struct flat {
    tctl_tree *tree;
    char *paths;          /* where the next path goes */
    tctl_tree_todo *todo; /* NULL while counting */
    size_t n_todo, path_bytes;
} flat;

static void add_entry(flat *f, const tctl_tree_folder *folder, tctl_tree_node *node)
{
    tctl_tree_entry *entry = &f->tree->entries[f->tree->n_entries++];
    entry->path = f->paths;
    if (folder->path_length) {
        memcpy(f->paths, folder->path, folder->path_length);
        f->paths[folder->path_length] = '/';
        f->paths += folder->path_length + 1;
    }
    memcpy(f->paths, node->name, node->name_length);
    f->paths += node->name_length + 1; /* the arena's memory is zero */
    entry->type = node->type;
    entry->size = node->size;
    entry->digest = node->digest;
    if (node->type == 'f' || node->type == 'x') {
        f->tree->n_files++;
        f->tree->n_bytes += node->size;
    }
    if (!node->done)
        f->todo[f->n_todo++] = (tctl_tree_todo){node, entry};
}

/* Depth is bounded by the length of a path that can be opened. */
static void flatten(flat *f, const tctl_tree_folder *folder)
{
    for (size_t i = 0; i < folder->n; i++) {
        tctl_tree_node *node = &folder->nodes[i];
        if (node->type == 'd' && !is_empty_folder(node))
            flatten(f, node->folder);
        else
            add_entry(f, folder, node);
    }
}

static tctl_status make_entries(tctl_tree_job *job, tctl_arena *arena, flat *f, tctl_error *err)
{
    size_t n = 0, n_todo = 0, bytes = 0;
    for (size_t i = 0; i < job->n_folders; i++) {
        const tctl_tree_folder *folder = job->folders[i];
        for (size_t k = 0; k < folder->n; k++) {
            n++;
            n_todo += !folder->nodes[k].done;
            bytes += folder->path_length + folder->nodes[k].name_length + 2;
        }
    }
    f->tree->entries = tctl_arena_take_array(arena, n, sizeof *f->tree->entries);
    f->paths = tctl_arena_take(arena, bytes);
    f->todo = calloc(n_todo ? n_todo : 1, sizeof *f->todo);
    if (!f->tree->entries || !f->paths || !f->todo)
        return tctl_fail_memory(err, n * sizeof *f->tree->entries + bytes + n_todo * sizeof *f->todo);
    flatten(f, job->folders[0]);
    return TCTL_OK;
}

/* ---- the digest ------------------------------------------------------------------------------------- */

static size_t put_decimal(char *out, uint64_t value)
{
    char digits[20];
    size_t n = 0, at = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (n > 0)
        out[at++] = digits[--n];
    return at;
}

static tctl_sha256 digest_entries(tctl_hasher *hasher, const tctl_tree_entry *entries, uint64_t n)
{
    tctl_hasher_add(hasher, HEADER, sizeof HEADER);
    for (uint64_t i = 0; i < n; i++) {
        const tctl_tree_entry *e = &entries[i];
        char line[128];
        size_t at = 0;
        line[at++] = e->type;
        line[at++] = ' ';
        at += put_decimal(line + at, e->size);
        line[at++] = ' ';
        if (e->type == 'd') {
            line[at++] = '-';
        } else {
            tctl_sha256_hex(&e->digest, line + at);
            at += TCTL_SHA256_HEX - 1;
        }
        line[at++] = ' ';
        tctl_hasher_add(hasher, line, at);
        tctl_hasher_add(hasher, e->path, strlen(e->path) + 1);
    }
    return tctl_hasher_finish(hasher);
}

static tctl_status hash_folder(tctl_tree_job *job, tctl_arena *arena, tctl_tree *ret, tctl_error *err)
{
    tctl_tree tree = {.is_folder = true};
    flat f = {.tree = &tree};
    tctl_tree_walk(job);
    tctl_status status = job_status(job, err);
    if (status == TCTL_OK) {
        tctl_tree_job_run(job, job->n_folders, sort_folder, job);
        status = make_entries(job, arena, &f, err);
    }
    if (status == TCTL_OK) {
        tctl_tree_read(job, f.todo, f.n_todo);
        status = job_status(job, err);
    }
    if (status == TCTL_OK) {
        tree.digest = digest_entries(job->scratch[0].hasher, tree.entries, tree.n_entries);
        *ret = tree;
    }
    free(f.todo);
    return status;
}

static tctl_status hash_single(tctl_tree_job *job, const struct stat *st, const char *name, tctl_arena *arena,
                               tctl_tree *ret, tctl_error *err)
{
    tctl_tree tree = {.n_files = 1, .n_bytes = (uint64_t)st->st_size, .n_entries = 1};
    tctl_tree_node node = {.name = name};
    tctl_tree_node_set(&node, st);
    tree.entries = tctl_arena_take(arena, sizeof *tree.entries);
    if (!tree.entries)
        return tctl_fail_memory(err, sizeof *tree.entries);
    *tree.entries =
        (tctl_tree_entry){.path = name, .type = st->st_mode & S_IXUSR ? 'x' : 'f', .size = node.size};
    atomic_store(&job->seen, 1);
    tctl_tree_todo todo = {&node, tree.entries};
    char *key = job->scratch[0].path;
    bool fits = tctl_tree_job_key(job, "", 0, name, key);
    if (fits && tctl_stat_cache_get(job->request->cache, key, st, &tree.entries->digest)) {
        atomic_store(&job->cached, 1);
    } else {
        atomic_store(&job->bytes_to_hash, node.size);
        tctl_tree_read(job, &todo, 1);
    }
    tctl_status status = job_status(job, err);
    if (status != TCTL_OK)
        return status;
    tree.entries->path = "";
    tree.digest = tree.entries->digest;
    *ret = tree;
    return TCTL_OK;
}

/* ---- the root --------------------------------------------------------------------------------------- */

static tctl_status fail_root(const char *path, int errnum, tctl_error *err)
{
    char target[4096];
    ssize_t n = errnum == ENOENT ? readlink(path, target, sizeof target - 1) : -1;
    if (n < 0)
        return tctl_fail_errno(err, errnum, "cannot hash '%s'", path);
    target[n] = '\0';
    return tctl_fail(err, TCTL_ENOENT, "cannot hash '%s': it is a link to '%s', which does not exist", path,
                     target);
}

/* Opens the folder of the tree, or the folder that holds the single file; `absolute` is changed to be its path. */
static tctl_status hash_root(tctl_tree_job *job, char *absolute, tctl_arena *arena, tctl_tree *ret,
                             tctl_error *err)
{
    struct stat st;
    if (stat(absolute, &st) != 0)
        return fail_root(job->shown, errno, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return tctl_fail(err, TCTL_EINVAL, "cannot hash '%s': it is neither a file nor a folder", job->shown);
    char *name = NULL;
    if (S_ISREG(st.st_mode)) {
        char *slash = strrchr(absolute, '/');
        *slash = '\0';
        name = slash + 1;
    }
    job->single = name != NULL;
    job->absolute = strcmp(absolute, "/") == 0 ? "" : absolute;
    job->root = open(absolute[0] ? absolute : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (job->root < 0 && name)
        job->root = open(absolute[0] ? absolute : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (job->root < 0)
        return fail_root(job->shown, errno, err);
    return name ? hash_single(job, &st, name, arena, ret, err) : hash_folder(job, arena, ret, err);
}

tctl_status tctl_tree_hash(const char *path, const tctl_tree_request *request, tctl_arena *arena,
                           tctl_tree *ret, tctl_error *err)
{
    tctl_tree_job job;
    tctl_status status = job_init(&job, path, request, err);
    char *absolute = status == TCTL_OK ? realpath(path, NULL) : NULL;
    if (status == TCTL_OK && !absolute)
        status = fail_root(path, errno, err);
    if (status == TCTL_OK)
        status = hash_root(&job, absolute, arena, ret, err);
    if (status == TCTL_OK)
        tctl_tree_job_tell(&job, true);
    free(absolute);
    job_release(&job);
    return status;
}
