/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is inside a gzip (RFC 1952), by zlib: one line, with the name, the time and the compression left out. Several
 * members behind each other are one content, as gzip(1) has it; zeros behind the last are padding. CRC-32 and length of
 * every member are checked in a first pass.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "manifest/content/walk.h"

enum { INPUT_BYTES = 64 * 1024 };

typedef struct gzip_source {
    tctl_source base;
    tctl_walk *walk;
    tctl_source *from;
    z_stream stream;
    bool started;
    bool done;         /* the last member has ended */
    uint64_t fed;      /* of `from`, handed to zlib */
    uint64_t at;       /* position in what is inside */
    unsigned char *in; /* INPUT_BYTES, while started */
} gzip_source;

static void end_stream(void *what)
{
    gzip_source *g = what;
    if (g->started)
        inflateEnd(&g->stream);
    free(g->in);
    g->in = NULL;
    g->started = false;
}

static tctl_status start(gzip_source *g, tctl_error *err)
{
    end_stream(g);
    g->stream = (z_stream){0};
    g->in = malloc(INPUT_BYTES);
    g->started = g->in != NULL && inflateInit2(&g->stream, 16 + MAX_WBITS) == Z_OK;
    if (!g->started) {
        end_stream(g);
        return tctl_fail_memory(err, INPUT_BYTES);
    }
    g->done = false;
    g->fed = g->at = 0;
    return TCTL_OK;
}

static tctl_status damaged(const gzip_source *g, const char *why, tctl_error *err)
{
    return tctl_fail(err, TCTL_EFORMAT, "'%s' is cut short or damaged, at byte %" PRIu64 ": %s",
                     g->from->name, g->fed - g->stream.avail_in, why);
}

static tctl_status feed(gzip_source *g, tctl_error *err)
{
    uint64_t rest = g->from->size - g->fed;
    size_t n = rest < INPUT_BYTES ? (size_t)rest : INPUT_BYTES;
    if (g->stream.avail_in > 0 || n == 0)
        return TCTL_OK;
    tctl_status st = tctl_source_read(g->from, g->fed, g->in, n, err);
    if (st == TCTL_OK) {
        g->stream.next_in = g->in;
        g->stream.avail_in = (uInt)n;
        g->fed += n;
    }
    return st;
}

/* Behind a member: another one, padding, or the end. */
static tctl_status next_member(gzip_source *g, tctl_error *err)
{
    bool padding = false;
    for (;;) {
        tctl_status st = feed(g, err);
        if (st != TCTL_OK)
            return st;
        while (g->stream.avail_in > 0 && *g->stream.next_in == 0) {
            padding = true;
            g->stream.next_in++;
            g->stream.avail_in--;
        }
        if (g->stream.avail_in > 0)
            break;
        if (g->fed == g->from->size) {
            g->done = true;
            return TCTL_OK;
        }
    }
    if (padding || *g->stream.next_in != 0x1f)
        return damaged(g, "there is something else behind the end", err);
    return inflateReset(&g->stream) == Z_OK ? TCTL_OK : tctl_fail_memory(err, 0);
}

/* At most n bytes, at least one unless all is read. */
static tctl_status inflate_some(gzip_source *g, void *into, size_t n, size_t *ret, tctl_error *err)
{
    *ret = 0;
    while (*ret == 0 && !g->done) {
        tctl_status st = feed(g, err);
        if (st == TCTL_OK)
            st = tctl_walk_spend(g->walk, n, err);
        if (st != TCTL_OK)
            return st;
        g->stream.next_out = into;
        g->stream.avail_out = (uInt)n;
        int code = inflate(&g->stream, Z_NO_FLUSH);
        *ret = n - g->stream.avail_out;
        g->walk->bytes_left += g->stream.avail_out;
        if (code == Z_MEM_ERROR)
            return tctl_fail_memory(err, 0);
        if (code == Z_BUF_ERROR && g->stream.avail_in == 0 && g->fed == g->from->size)
            return damaged(g, "it ends early", err);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return damaged(g, g->stream.msg == NULL ? "it can't be inflated" : g->stream.msg, err);
        g->at += *ret;
        if (code == Z_STREAM_END && (st = next_member(g, err)) != TCTL_OK)
            return st;
    }
    return TCTL_OK;
}

static tctl_status read_inside(tctl_source *s, uint64_t offset, void *into, size_t n, tctl_error *err)
{
    gzip_source *g = (gzip_source *)s;
    unsigned char skipped[4096];
    size_t got = 0;
    tctl_status st = offset < g->at || !g->started ? start(g, err) : TCTL_OK;
    while (st == TCTL_OK && g->at < offset) {
        size_t want = offset - g->at < sizeof skipped ? (size_t)(offset - g->at) : sizeof skipped;
        st = inflate_some(g, skipped, want, &got, err);
        if (st == TCTL_OK && got == 0)
            st = damaged(g, "it ends early", err);
    }
    for (size_t done = 0; st == TCTL_OK && done < n; done += got) {
        size_t want = n - done < TCTL_SCRATCH_BYTES ? n - done : TCTL_SCRATCH_BYTES;
        st = inflate_some(g, (char *)into + done, want, &got, err);
        if (st == TCTL_OK && got == 0)
            st = damaged(g, "it ends early", err);
    }
    return st;
}

static tctl_status check_all(gzip_source *g, tctl_sha256 *ret, tctl_error *err)
{
    tctl_walk *w = g->walk;
    size_t got = 1;
    tctl_status st = start(g, err);
    tctl_hasher_finish(w->payload);
    while (st == TCTL_OK && got > 0) {
        st = inflate_some(g, w->scratch, TCTL_SCRATCH_BYTES, &got, err);
        if (st == TCTL_OK)
            tctl_hasher_add(w->payload, w->scratch, got);
    }
    if (st == TCTL_OK)
        *ret = tctl_hasher_finish(w->payload);
    return st;
}

tctl_status tctl_list_gzip(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    tctl_walk *w = l->walk;
    tctl_sha256 digest;
    const char *inner = NULL, *name = tctl_arena_format(w->arena, "%s: inside", s->name);
    gzip_source *g = tctl_arena_take(w->arena, sizeof *g);
    if (g == NULL || name == NULL)
        return tctl_fail_memory(err, sizeof *g);
    *g = (gzip_source){.base = {name, 0, true, read_inside, NULL}, .walk = w, .from = s};
    tctl_status st = tctl_walk_close_later(w, end_stream, g, err);
    if (st == TCTL_OK)
        st = check_all(g, &digest, err);
    g->base.size = g->at;
    if (st == TCTL_OK)
        st = tctl_list_member(l, "inside", &g->base, &digest, &inner, err);
    if (!w->keep)
        end_stream(g);
    *ret_format = "gzip";
    return st;
}
