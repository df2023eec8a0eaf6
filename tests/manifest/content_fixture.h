/* SPDX-License-Identifier: Apache-2.0 */
/* Files of known containers, made by the tests themselves, and what is found in them. */
#ifndef TCTL_TESTS_MANIFEST_CONTENT_FIXTURE_H
#define TCTL_TESTS_MANIFEST_CONTENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/file.h"
#include "manifest/content/content.h"

static tctl_arena *arena;
static char folder[64];
static tctl_error error;

static inline int set_up(void **state)
{
    (void)state;
    arena = tctl_arena_create();
    snprintf(folder, sizeof folder, "/tmp/tctl-content-XXXXXX");
    return arena != NULL && mkdtemp(folder) != NULL ? 0 : 1;
}

static inline int tear_down(void **state)
{
    (void)state;
    tctl_arena_destroy(arena);
    return tctl_remove_tree(folder, NULL) == TCTL_OK ? 0 : 1;
}

/* A test that runs in the fresh folder. */
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static inline const char *write_file(const char *name, const void *data, size_t size)
{
    const char *path = tctl_path_join(arena, folder, name);
    assert_int_equal(tctl_file_replace(path, data, size, 0600, &error), TCTL_OK);
    return path;
}

static inline const char *write_buf(const char *name, tctl_buf *bytes)
{
    const char *path = write_file(name, tctl_buf_text(bytes), bytes->size);
    tctl_buf_release(bytes);
    return path;
}

static inline tctl_buf read_whole(const char *path)
{
    tctl_buf bytes = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(path, 1u << 26, &bytes, &error), TCTL_OK);
    return bytes;
}

/* ---- what is found ----------------------------------------------------------------------------------- */

static inline tctl_status look(const char *path, tctl_content *ret)
{
    *ret = (tctl_content){0};
    tctl_error_clear(&error);
    return tctl_content_of(arena, path, NULL, ret, &error);
}

static inline tctl_content content_of(const char *path, const char *format)
{
    tctl_content c;
    tctl_status st = look(path, &c);
    if (st != TCTL_OK)
        fail_msg("%s", error.message);
    if (c.format == NULL)
        fail_msg("'%s' is not looked into: %s", path, c.why_not == NULL ? "no known format" : c.why_not);
    assert_string_equal(c.format, format);
    return c;
}

static inline void assert_same(tctl_content a, tctl_content b)
{
    assert_string_equal(a.format, b.format);
    assert_memory_equal(a.sha256.bytes, b.sha256.bytes, sizeof a.sha256.bytes);
    assert_true(a.n_tensors == b.n_tensors);
}

static inline void assert_other(tctl_content a, tctl_content b)
{
    assert_memory_not_equal(a.sha256.bytes, b.sha256.bytes, sizeof a.sha256.bytes);
}

/* Damaged, and the message (or its first note) has the words. */
static inline void assert_damaged(const char *path, const char *words)
{
    tctl_content c;
    assert_int_equal(look(path, &c), TCTL_EFORMAT);
    if (strstr(error.message, words) == NULL && (error.n_notes == 0 || strstr(error.notes[0], words) == NULL))
        fail_msg("'%s' is not in '%s' ('%s')", words, error.message, error.n_notes > 0 ? error.notes[0] : "");
}

static inline void assert_not_looked_into(const char *path, const char *words)
{
    tctl_content c;
    assert_int_equal(look(path, &c), TCTL_OK);
    assert_null(c.format);
    if (words == NULL)
        assert_null(c.why_not);
    else if (c.why_not == NULL || strstr(c.why_not, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, c.why_not == NULL ? "(nothing)" : c.why_not);
}

/* What tctl_content_explain says of two files; "" if they are the same. From the arena. */
static inline const char *difference(const char *a, const char *b)
{
    json_t *found = NULL;
    tctl_buf text = TCTL_BUF_INIT;
    tctl_error_clear(&error);
    if (tctl_content_compare(arena, a, b, NULL, &found, &error) != TCTL_OK)
        fail_msg("%s", error.message);
    if (found != NULL)
        tctl_content_explain(found, &text);
    const char *words = tctl_arena_copy(arena, tctl_buf_text(&text), text.size);
    tctl_buf_release(&text);
    json_decref(found);
    return words;
}

/* ---- containers -------------------------------------------------------------------------------------- */

typedef struct part {
    const char *name;
    const void *data;
    size_t size;
} part;

#define PART(name, text)                                                                                     \
    {                                                                                                        \
        name, text, sizeof text - 1                                                                          \
    }

/* A zip of `n` members, compressed or stored, with a time. */
static inline const char *write_zip(const char *name, const part *parts, size_t n, bool compressed,
                                    time_t time)
{
    const char *path = tctl_path_join(arena, folder, name);
    int code = 0;
    zip_t *z = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(z);
    for (size_t i = 0; i < n; i++) {
        zip_source_t *s = zip_source_buffer(z, parts[i].data, parts[i].size, 0);
        zip_int64_t at = zip_file_add(z, parts[i].name, s, 0);
        assert_true(at >= 0);
        assert_int_equal(
            zip_set_file_compression(z, (zip_uint64_t)at, compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 9), 0);
        assert_int_equal(zip_file_set_mtime(z, (zip_uint64_t)at, time, 0), 0);
    }
    assert_int_equal(zip_close(z), 0);
    return path;
}

static inline void add_gzip(tctl_buf *ret, const void *data, size_t size, int level)
{
    unsigned char out[65536];
    z_stream s = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)size};
    assert_int_equal(deflateInit2(&s, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    int code = Z_OK;
    while (code == Z_OK) {
        s.next_out = out;
        s.avail_out = sizeof out;
        code = deflate(&s, Z_FINISH);
        tctl_buf_add(ret, out, sizeof out - s.avail_out);
    }
    assert_int_equal(code, Z_STREAM_END);
    deflateEnd(&s);
}

static inline void add_u64(tctl_buf *ret, uint64_t value)
{
    uint8_t bytes[8];
    tctl_put_u64(bytes, value);
    tctl_buf_add(ret, bytes, sizeof bytes);
}

/* Version 1 of .npy. */
static inline void add_npy(tctl_buf *ret, const char *header, const void *data, size_t size)
{
    size_t n = strlen(header) + 1;
    tctl_buf_add(ret, "\x93NUMPY\1\0", 8);
    tctl_buf_add_char(ret, (char)(n & 255));
    tctl_buf_add_char(ret, (char)(n >> 8));
    tctl_buf_add_text(ret, header);
    tctl_buf_add_char(ret, '\n');
    tctl_buf_add(ret, data, size);
}

static inline const char *write_npy(const char *name, const char *header, const void *data, size_t size)
{
    tctl_buf bytes = TCTL_BUF_INIT;
    add_npy(&bytes, header, data, size);
    return write_buf(name, &bytes);
}

static inline const char *write_safetensors(const char *name, const char *header, const void *data,
                                            size_t size)
{
    tctl_buf bytes = TCTL_BUF_INIT;
    add_u64(&bytes, strlen(header));
    tctl_buf_add_text(&bytes, header);
    tctl_buf_add(&bytes, data, size);
    return write_buf(name, &bytes);
}

#endif
