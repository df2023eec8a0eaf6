/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at one file: the listing that is digested, and what a look may cost. Internal to content/.
 *
 * A container becomes a listing: a line for each value and tensor in it, in an order that the format's meaning
 * decides (docs/outputs.md). The content digest is the SHA-256 of the listing. A container inside a container has a
 * listing of its own, and one line in the outer one.
 *
 * Statuses: TCTL_EFORMAT says that the container is damaged, TCTL_EUNSUPPORTED that it is not looked into.
 */
#ifndef TCTL_MANIFEST_CONTENT_WALK_H
#define TCTL_MANIFEST_CONTENT_WALK_H

#include "manifest/content/array.h"
#include "manifest/content/content.h"
#include "manifest/content/source.h"

enum {
    TCTL_LOOK_DEPTH = 4, /* containers in containers */
    TCTL_SCRATCH_BYTES = 1 << 20,
    TCTL_HEAD_BYTES = 64, /* what a format is recognised by */
    TCTL_KEPT_LEAVES = 1 << 20
};

enum { TCTL_LEAF_TENSOR = 1, TCTL_LEAF_VALUE = 2, TCTL_LEAF_BYTES = 3 };

/* A line of a listing that is kept, to be compared with another file's. */
typedef struct tctl_leaf {
    int kind;
    const char *name;   /* with those of the containers around it */
    const char *text;   /* of a value: what the line says of it */
    tctl_array tensor;  /* of a tensor, or of bytes: u8 [n] */
    tctl_sha256 sha256; /* of a tensor or of bytes */
} tctl_leaf;

typedef struct tctl_closer {
    void (*close)(void *);
    void *what;
    struct tctl_closer *next;
} tctl_closer;

typedef struct tctl_walk {
    tctl_arena *arena; /* lives as long as the walk */
    const tctl_content_rules *rules;
    uint64_t bytes_left; /* that may still be read or inflated for this file */
    uint64_t lines_left;
    uint32_t depth;
    tctl_hasher *payload;
    unsigned char *scratch; /* TCTL_SCRATCH_BYTES; nothing in it outlives a call */
    bool keep;              /* leaves, and all that is needed to read them again */
    tctl_leaf *leaves;
    size_t n_leaves, room;
    tctl_buf prefix; /* names of the containers around, each with a '/' behind it */
    tctl_buf line;   /* the one being made */
    tctl_closer *closers;
} tctl_walk;

/* The listing of one container. */
typedef struct tctl_listing {
    tctl_walk *walk;
    tctl_hasher *hasher;
    uint64_t n_tensors;
} tctl_listing;

typedef struct tctl_looked {
    const char *format; /* NULL: no container that is known */
    tctl_sha256 sha256;
    uint64_t n_tensors;
} tctl_looked;

tctl_status tctl_walk_begin(tctl_walk *, uint64_t file_bytes, tctl_error *err);
void tctl_walk_end(tctl_walk *);

/* Lists `source` if it is a known container. */
tctl_status tctl_walk_look(tctl_walk *, tctl_source *, tctl_looked *ret, tctl_error *err);

/* TCTL_EUNSUPPORTED once the file has cost what it may. */
tctl_status tctl_walk_spend(tctl_walk *, uint64_t bytes, tctl_error *err);
/* Calls close(what) when the walk ends. */
tctl_status tctl_walk_close_later(tctl_walk *, void (*close)(void *), void *what, tctl_error *err);

/* The line "<words> TAB name LF": `words` as printed, with bytes below blank, DEL and the backslash as \xHH; the same
 * for the name. */
tctl_status tctl_list_value(tctl_listing *, const char *name, const char *words, tctl_error *err);
/* "tensor <dtype> [<shape>] <sha256 of the payload><more>". `known`: the payload's digest, or NULL to compute it. */
tctl_status tctl_list_tensor(tctl_listing *, const char *name, const tctl_array *, const tctl_sha256 *known,
                             const char *more, tctl_error *err);
/* "<format> <digest of its listing>" for a container, else "bytes <size> <sha256>". `known`: the digest of its bytes,
 * or NULL to compute it. A container that is damaged or not looked into counts as bytes here. */
tctl_status tctl_list_member(tctl_listing *, const char *name, tctl_source *, const tctl_sha256 *known,
                             const char **ret_format, tctl_error *err);

/* A format's function: lists the source, says what it was. */
typedef tctl_status tctl_lister(tctl_listing *, tctl_source *, const char **ret_format, tctl_error *err);
tctl_lister tctl_list_zip, tctl_list_torch_legacy, tctl_list_safetensors, tctl_list_npy, tctl_list_gzip,
    tctl_list_tensorboard, tctl_list_json;

#endif
