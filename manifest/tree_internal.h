/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the steps of hashing a tree share. Only for tree*.c.
 *
 * Walk (tree_walk.c): all folders read and all entries statted in parallel; what the cache knows gets its digest, links
 * get theirs. Flatten and digest (tree.c): entries sorted by path bytes. Read (tree_read.c): the files that are left,
 * hashed in parallel. No step depends on the order in which the file system or the threads deliver.
 */
#ifndef TCTL_MANIFEST_TREE_INTERNAL_H
#define TCTL_MANIFEST_TREE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "manifest/tree.h"

enum { TCTL_TREE_PATH = 16384 }; /* of an absolute path that is built here; open(2) takes 4096 */

typedef struct tctl_tree_folder tctl_tree_folder;

/* An entry of a folder, as the walk found it. */
typedef struct tctl_tree_node {
    const char *name;
    uint32_t name_length;
    char type; /* as in tctl_tree_entry; 0: could not be had, and an error was noted */
    bool done; /* `digest` is set */
    uint64_t size;
    dev_t device;
    ino_t inode;
    struct timespec mtime, ctime;
    tctl_sha256 digest;
    tctl_tree_folder *folder; /* for 'd' */
} tctl_tree_node;

struct tctl_tree_folder {
    const char *path; /* relative to the root; "" for the root itself */
    size_t path_length;
    dev_t device;
    ino_t inode;
    tctl_tree_node *nodes;
    size_t n;
    int fd;              /* open while entries are statted */
    atomic_uint pending; /* batches of entries not statted yet */
};

typedef struct tctl_tree_scratch { /* of one thread */
    tctl_arena *arena;
    tctl_hasher *hasher;
    uint8_t *buffer;
    char *path;
    tctl_tree_node *nodes; /* of the folder that is being read */
    size_t room;
} tctl_tree_scratch;

enum { TCTL_TREE_BUFFER = 256 * 1024 };

/* One for each thread. */
tctl_status tctl_tree_scratch_create(uint32_t n_threads, tctl_tree_scratch **ret, tctl_error *err);
void tctl_tree_scratch_destroy(tctl_tree_scratch *, uint32_t n_threads); /* NULL is fine */
/* Puts a node with a copy of the name at `n`, behind those that are there; false if memory is out. */
bool tctl_tree_scratch_add(tctl_tree_scratch *, size_t n, const char *name);

typedef struct tctl_tree_job {
    const tctl_tree_request *request;
    const char *shown;    /* the root as the caller named it, for messages */
    bool single;          /* … and it is a file */
    const char *absolute; /* its folder, for the cache; "" for the root of the file system */
    int root;
    int64_t looked; /* tctl_stat_cache_now() before anything was statted */
    uint32_t n_threads;
    tctl_tree_scratch *scratch; /* [n_threads] */

    pthread_mutex_t mutex; /* for the folders and the errors */
    tctl_tree_folder **folders;
    size_t n_folders, folders_room;
    tctl_error
        error; /* of the failed path that comes first in byte order, so that it does not depend on threads */
    char *error_path; /* NULL: that of the root, or none in particular */
    uint64_t n_errors;
    atomic_bool failed;
    atomic_bool no_noatime; /* O_NOATIME was refused */

    atomic_uint_fast64_t seen, cached, hashed, bytes_hashed, bytes_to_hash;
    atomic_flag telling; /* held while progress is told */
    int64_t told, flushed;
} tctl_tree_job;

/* Remembers the error of a path (NULL: of none in particular). */
void tctl_tree_job_fail(tctl_tree_job *, const char *path, const tctl_error *);
/* Tells progress if a tenth of a second has passed, and lets the cache write what is new every few seconds. */
void tctl_tree_job_tell(tctl_tree_job *, bool now);
/* "absolute/path" into `out` of TCTL_TREE_PATH bytes: the key for the cache. `name` may be "". False: too long. */
bool tctl_tree_job_key(const tctl_tree_job *, const char *path, size_t path_length, const char *name,
                       char *out);
/* "root/path" into `out`, for messages. */
void tctl_tree_job_shown(const tctl_tree_job *, const char *path, char *out, size_t size);
/* Runs fn on each thread of the pool, or here. */
void tctl_tree_job_run(tctl_tree_job *, uint64_t n_chunks, tctl_chunk_fn *fn, void *arg);

/* Fills job->folders; the root's is the first. Errors are in the job. */
void tctl_tree_walk(tctl_tree_job *);

/* Sets `stat` fields that the cache looks at. */
void tctl_tree_node_stat(const tctl_tree_node *, struct stat *ret);
void tctl_tree_node_set(tctl_tree_node *, const struct stat *);

typedef struct tctl_tree_todo { /* a file to be read */
    tctl_tree_node *node;
    tctl_tree_entry *entry; /* gets the digest; its path is relative to the root */
} tctl_tree_todo;
/* Errors are in the job. */
void tctl_tree_read(tctl_tree_job *, tctl_tree_todo *, size_t n);

#endif
