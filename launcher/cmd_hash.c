/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainctl hash PATH...: SHA-256 of files and trees, through the stat cache, on all processors.
 *
 * Plain output is what `sha256sum -c` accepts, with its escaping of names. A path that can't be hashed is told, and the
 * others are hashed all the same.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "host/worker.h"
#include "launcher/command.h"
#include "launcher/hash_content.h"
#include "manifest/path_json.h"
#include "manifest/stat_cache.h"
#include "manifest/tree.h"

#define SECOND     INT64_C(1000000000)
#define SHOW_AFTER (SECOND / 2)

/* One argument. */
typedef struct item {
    const char *path;
    bool is_folder;
    tctl_arena *arena; /* of the tree; NULL once it was printed */
    tctl_status status;
    tctl_tree tree;
    tctl_error *error; /* in the arena; NULL: none */
    /* what its job last told */
    uint64_t seen, cached, hashed, bytes_hashed, bytes_to_hash;
    struct batch *batch;
} item;

/* What is hashed at once: one folder, or all files that stand side by side on the command line. */
typedef struct batch {
    item *items;
    size_t n;
    tctl_pool *pool;
    tctl_stat_cache *cache;
    pthread_mutex_t mutex; /* for the display */
    int64_t began;
    bool on_terminal, shown;
} batch;

static int64_t monotonic(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/* "1.2 GB": three digits and a decimal unit. */
static const char *bytes_text(double bytes, char out[16])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t i = 0;
    while (bytes >= 999.5 && i + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        i++;
    }
    snprintf(out, 16, i > 0 && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
    return out;
}

/* Statting, and reading with hashing, differ by orders of magnitude; so each has its own figures. */
static void show_progress(batch *b)
{
    uint64_t seen = 0, cached = 0, hashed = 0, done = 0, total = 0;
    char done_text[16], total_text[16], rate_text[16];
    int64_t elapsed = monotonic() - b->began;
    if (elapsed < SHOW_AFTER)
        return;
    for (size_t i = 0; i < b->n; i++) {
        seen += b->items[i].seen;
        cached += b->items[i].cached;
        hashed += b->items[i].hashed;
        done += b->items[i].bytes_hashed;
        total += b->items[i].bytes_to_hash;
    }
    b->shown = true;
    if (done == 0 && hashed == 0)
        fprintf(stderr, "\r\033[Kstat: %" PRIu64 " files (%" PRIu64 " unchanged)", seen, cached);
    else
        fprintf(
            stderr,
            "\r\033[Kread and hash: %" PRIu64 " of %" PRIu64 " files, %s of %s, %s/s (%" PRIu64 " unchanged)",
            hashed, seen - cached, bytes_text((double)done, done_text), bytes_text((double)total, total_text),
            bytes_text((double)done * 1e9 / (double)elapsed, rate_text), cached);
}

static void take_progress(void *impl, uint64_t seen, uint64_t cached, uint64_t hashed, uint64_t bytes_hashed,
                          uint64_t bytes_to_hash)
{
    item *it = impl;
    pthread_mutex_lock(&it->batch->mutex);
    it->seen = seen;
    it->cached = cached;
    it->hashed = hashed;
    it->bytes_hashed = bytes_hashed;
    it->bytes_to_hash = bytes_to_hash;
    show_progress(it->batch);
    pthread_mutex_unlock(&it->batch->mutex);
}

/* A path as sha256sum writes it: one with a line break or a backslash is escaped, and the line begins with '\'. */
static void print_sum(const tctl_sha256 *digest, const char *folder, const char *name)
{
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(digest, hex);
    size_t n = strlen(folder);
    const char *const parts[] = {folder, n > 0 && name[0] && folder[n - 1] != '/' ? "/" : "", name};
    bool escape = folder[strcspn(folder, "\\\n\r")] || name[strcspn(name, "\\\n\r")];
    printf("%s%s  ", escape ? "\\" : "", hex);
    for (size_t i = 0; i < 3; i++) {
        for (const char *p = parts[i]; *p; p++) {
            if (*p == '\\' || *p == '\n' || *p == '\r') {
                putchar('\\');
                putchar(*p == '\n' ? 'n' : *p == '\r' ? 'r' : '\\');
            } else {
                putchar(*p);
            }
        }
    }
    putchar('\n');
}

static void print_text(const tctl_command_line *line, const char *path, const tctl_tree *tree)
{
    if (!tree->is_folder || tctl_cli_has(line, "--tree")) {
        print_sum(&tree->digest, path, "");
        return;
    }
    uint64_t n_others = 0;
    for (uint64_t i = 0; i < tree->n_entries; i++) {
        const tctl_tree_entry *e = &tree->entries[i];
        if (e->type == 'f' || e->type == 'x')
            print_sum(&e->digest, path, e->path);
        else
            n_others++;
    }
    if (n_others > 0)
        tctl_cli_warn(
            line, "'%s' has %" PRIu64 " links or empty folders, which are not listed; --tree counts them in",
            path, n_others);
}

static json_t *digest_json(const tctl_sha256 *digest)
{
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(digest, hex);
    return json_string(hex);
}

/* Sizes are strings, as everywhere in our JSON: they may be beyond 2^53. */
static json_t *number_json(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

static json_t *entries_json(const tctl_tree *tree)
{
    json_t *array = json_array();
    for (uint64_t i = 0; array && i < tree->n_entries; i++) {
        const tctl_tree_entry *e = &tree->entries[i];
        const char type[2] = {e->type, '\0'};
        json_t *object = json_pack("{s:o, s:s, s:o}", "path", tctl_path_to_json(e->path), "type", type,
                                   "size", number_json(e->size));
        if (object && e->type != 'd')
            json_object_set_new(object, "sha256", digest_json(&e->digest));
        if (json_array_append_new(array, object) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *tree_json(const tctl_command_line *line, const char *path, const tctl_tree *tree)
{
    json_t *object = json_pack("{s:o, s:s, s:o, s:o, s:o}", "path", tctl_path_to_json(path), "kind",
                               tree->is_folder ? "folder" : "file", tree->is_folder ? "tree" : "sha256",
                               digest_json(&tree->digest), "files", number_json(tree->n_files), "bytes",
                               number_json(tree->n_bytes));
    if (object && tree->is_folder && !tctl_cli_has(line, "--tree") &&
        json_object_set_new(object, "entries", entries_json(tree)) != 0) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

/* ---- hashing ---------------------------------------------------------------------------------------- */

static void hash_item(item *it, tctl_pool *pool)
{
    const tctl_tree_progress progress = {it, take_progress};
    const tctl_tree_request request = {
        .pool = pool, .cache = it->batch->cache, .progress = it->batch->on_terminal ? &progress : NULL};
    tctl_error err;
    it->arena = tctl_arena_create();
    it->status = it->arena ? tctl_tree_hash(it->path, &request, it->arena, &it->tree, &err)
                           : tctl_fail_memory(&err, sizeof err);
    if (it->status == TCTL_OK)
        return;
    it->error = it->arena ? tctl_arena_take(it->arena, sizeof *it->error) : NULL;
    if (it->error)
        *it->error = err;
}

static void hash_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    batch *b = arg;
    (void)thread;
    hash_item(&b->items[chunk], NULL);
}

/* A folder has all threads; files have one each. */
static void hash_batch(batch *b)
{
    b->began = monotonic();
    b->shown = false;
    if (b->n == 1)
        hash_item(b->items, b->pool);
    else
        tctl_pool_run(b->pool, b->n, hash_chunk, b);
    if (b->shown)
        fputs("\r\033[K", stderr);
}

/* Prints an item, or adds it to `results`; its exit code. */
static int finish_item(tctl_command_line *line, item *it, json_t *results)
{
    int code = TCTL_EXIT_OK;
    tctl_error memory;
    tctl_fail_memory(&memory, sizeof *it);
    if (it->status != TCTL_OK)
        code = tctl_cli_fail(line, it->error ? it->error : &memory);
    else if (!results)
        print_text(line, it->path, &it->tree);
    else if (json_array_append_new(results, tree_json(line, it->path, &it->tree)) != 0)
        code = tctl_cli_fail(line, &memory);
    tctl_arena_destroy(it->arena);
    return code;
}

static item *make_items(const tctl_command_line *line, batch *b)
{
    item *items = tctl_arena_take_array(line->arena, line->n_args, sizeof *items);
    for (uint32_t i = 0; items && i < line->n_args; i++) {
        struct stat st;
        items[i].path = line->args[i];
        items[i].is_folder = stat(line->args[i], &st) == 0 && S_ISDIR(st.st_mode);
        items[i].batch = b;
    }
    return items;
}

/* Hashes all arguments and prints them in their order. */
static int hash_all(tctl_command_line *line, batch *b, json_t *results)
{
    item *items = make_items(line, b);
    if (!items) {
        tctl_error err;
        tctl_fail_memory(&err, line->n_args * sizeof *items);
        return tctl_cli_fail(line, &err);
    }
    int code = TCTL_EXIT_OK;
    for (uint32_t i = 0; i < line->n_args; i += (uint32_t)b->n) {
        b->items = items + i;
        b->n = 1;
        while (!items[i].is_folder && i + b->n < line->n_args && !items[i + b->n].is_folder)
            b->n++;
        hash_batch(b);
        for (size_t k = 0; k < b->n; k++) {
            int this_code = finish_item(line, &b->items[k], results);
            code = code == TCTL_EXIT_OK ? this_code : code;
        }
    }
    return code;
}

static tctl_stat_cache *open_cache(const tctl_command_line *line)
{
    if (tctl_cli_has(line, "--no-cache"))
        return NULL;
    tctl_error why;
    tctl_stat_cache *cache = tctl_stat_cache_open(tctl_stat_cache_default_path(line->arena), &why);
    if (why.code != TCTL_OK)
        tctl_cli_warn(line, "%s", why.message);
    return cache;
}

static void close_cache(const tctl_command_line *line, tctl_stat_cache *cache)
{
    tctl_error err;
    if (tctl_stat_cache_flush(cache, &err) != TCTL_OK)
        tctl_cli_warn(line, "%s", err.message);
    tctl_stat_cache_close(cache);
}

static int run(tctl_command_line *line)
{
    int64_t threads = tctl_cpus_available();
    if (tctl_cli_has(line, "--content"))
        return tctl_hash_contents(line);
    if (!tctl_cli_number(line, "--threads", 1, 1024, &threads))
        return TCTL_EXIT_USAGE;
    tctl_error err;
    batch b = {.on_terminal = isatty(STDERR_FILENO) != 0};
    if (tctl_pool_create((uint32_t)threads, &b.pool, &err) != TCTL_OK)
        return tctl_cli_fail(line, &err);
    pthread_mutex_init(&b.mutex, NULL);
    b.cache = open_cache(line);
    json_t *results = tctl_cli_has(line, "--json") ? json_array() : NULL;
    int code = hash_all(line, &b, results);
    if (tctl_cli_has(line, "--json"))
        code = tctl_cli_print_json(line, results, code);
    close_cache(line, b.cache);
    tctl_pool_destroy(b.pool);
    pthread_mutex_destroy(&b.mutex);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == TCTL_EXIT_OK) {
        tctl_fail(&err, TCTL_EIO, "cannot write the digests to standard output");
        code = tctl_cli_fail(line, &err);
    }
    return code;
}

static const char *const usage[] = {"[--tree] [--no-cache] [--threads N] [--json] PATH...",
                                    "--content [--json] FILE...", NULL};

static const tctl_cli_option options[] = {
    {"--tree", NULL, "print one digest for a folder instead of its files'", false, 't'},
    {"--content", NULL, "print digests of what is in the files, whatever their containers are", false, 0},
    {"--no-cache", NULL, "read every file, also those that have not changed", false, 0},
    {"--threads", "N", "use N threads (default: all processors)", false, 'j'},
    {"--json", NULL, "print a JSON array with one object for each path", false, 0},
    {NULL, NULL, NULL, false, 0},
};

extern const tctl_command tctl_cmd_hash;
const tctl_command tctl_cmd_hash = {
    .name = "hash",
    .summary = "Print SHA-256 digests of files and folders",
    .usage = usage,
    .options = options,
    .details =
        "Prints what `sha256sum -c` accepts: a line for each file, also of the files in a folder. With "
        "--tree a "
        "folder has one digest, of names, types and contents (docs/hashing.md).\n\n"
        "With --content a file that is a known container (torch.save, safetensors, npy, npz, zip, gzip, "
        "TensorBoard) has the digest of what a reader gets, `FORMAT:DIGEST`, and a damaged one is an error "
        "(docs/outputs.md); any other file is `bytes:` and its SHA-256.\n\n"
        "Digests are remembered by inode, size and times in $XDG_CACHE_HOME/trainctl/stat-v1, so that files "
        "which have not changed are not read again.",
    .examples = "  trainctl hash data/ > SHA256SUMS && sha256sum -c SHA256SUMS\n"
                "  trainctl hash --tree data/\n",
    .rank = 110,
    .argument = TCTL_ARG_PATH,
    .min_args = 1,
    .max_args = 0,
    .run = run,
};
