/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source `text`: windows of a text, byte by byte, each with the bytes that follow as labels: for networks that learn to
 * say what comes next.
 *
 * The files are read whole, one behind the other, and of that `skip` bytes are left out and at most `length` used. Sample
 * i begins at byte i * stride: field `tokens`, u8 [context], its bytes; field `label`, i64 [context], the byte behind each
 * of them. Every byte is a token, so there are 256 (128 in a text of ASCII), whatever the encoding is; no file can be
 * malformed, only too short.
 *
 * Files are read, not mapped: a file that is cut short under a mapping kills the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainctl/ext/source.h"
#include "trainctl/host/services.h"
#include "trainctl/plugin.h"
#include "trainctl/tensor.h"

struct tctl_stage {
    const tctl_host *host;
    const tctl_memory *memory;
    unsigned char *bytes; /* of all files */
    size_t size, room;
    uint64_t first; /* byte of sample 0 */
    uint64_t context, stride, count;
};

/* ---- files --------------------------------------------------------------------------------------------- */

static tctl_status fail_system(const tctl_host *host, const char *what, const char *path, tctl_error *err)
{
    char room[128];
    return host->fail(err, TCTL_EIO, "cannot %s '%s': %s", what, path, strerror_r(errno, room, sizeof room));
}

/* Makes room for `more` bytes behind those that are there. */
static tctl_status grow(tctl_stage *s, size_t more, tctl_error *err)
{
    const size_t size = s->size + more;
    unsigned char *bytes = size < more ? NULL : s->memory->allocate(s->host, size ? size : 1);
    if (!bytes)
        return s->host->fail(err, TCTL_ENOMEM, "out of memory: %zu more bytes asked for", more);
    if (s->bytes)
        memcpy(bytes, s->bytes, s->size);
    s->memory->release(s->host, s->bytes);
    s->bytes = bytes;
    s->room = size;
    return TCTL_OK;
}

static tctl_status read_all(tctl_stage *s, int fd, const char *path, tctl_error *err)
{
    while (s->size < s->room) {
        ssize_t n = read(fd, s->bytes + s->size, s->room - s->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_system(s->host, "read", path, err);
        if (n == 0)
            return s->host->fail(err, TCTL_EIO,
                                 "'%s' became shorter while it was read: %zu bytes are missing", path,
                                 s->room - s->size);
        s->size += (size_t)n;
    }
    return TCTL_OK;
}

static tctl_status append_file(tctl_stage *s, const tctl_config *config, const char *path, tctl_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a FIFO must not hang us */
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return s->host->fail_option(err, config, "files", "there is no file '%s'", path);
    if (fd < 0)
        return fail_system(s->host, "open", path, err);
    tctl_status status = TCTL_OK;
    if (fstat(fd, &st) != 0)
        status = fail_system(s->host, "look at", path, err);
    else if (!S_ISREG(st.st_mode))
        status = s->host->fail_option(err, config, "files", "'%s' is not a regular file", path);
    if (!status)
        status = grow(s, (size_t)st.st_size, err);
    if (!status)
        status = read_all(s, fd, path, err);
    close(fd);
    return status;
}

/* ---- samples ------------------------------------------------------------------------------------------- */

static tctl_status cut(tctl_stage *s, const tctl_config *config, tctl_error *err)
{
    const tctl_host *host = s->host;
    s->first = (uint64_t)host->cfg_int(config, "skip");
    s->context = (uint64_t)host->cfg_int(config, "context");
    s->stride = host->cfg_given(config, "stride") ? (uint64_t)host->cfg_int(config, "stride") : s->context;
    uint64_t length = s->size > s->first ? s->size - s->first : 0;
    if (host->cfg_given(config, "length") && (uint64_t)host->cfg_int(config, "length") < length)
        length = (uint64_t)host->cfg_int(config, "length");
    if (length < s->context + 1)
        return host->fail_option(err, config, "context",
                                 "a sample needs %llu bytes and the one that follows; there are %llu",
                                 (unsigned long long)s->context, (unsigned long long)length);
    s->count = (length - s->context - 1) / s->stride + 1;
    return TCTL_OK;
}

static void text_destroy(tctl_stage *s)
{
    if (!s)
        return;
    s->memory->release(s->host, s->bytes);
    s->memory->release(s->host, s);
}

static tctl_status text_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                               tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    if (!memory)
        return host->fail(err, TCTL_EUNSUPPORTED, "the host has no service '%s'", TCTL_MEMORY_ID);
    tctl_stage *s = memory->allocate(host, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *s);
    *s = (tctl_stage){.host = host, .memory = memory};
    tctl_status status = TCTL_OK;
    for (uint32_t i = 0; i < host->cfg_length(config, "files") && !status; i++)
        status = append_file(s, config, host->cfg_text_at(config, "files", i), err);
    if (!status)
        status = cut(s, config, err);
    if (status) {
        text_destroy(s);
        return status;
    }
    *ret = s;
    return TCTL_OK;
}

static uint64_t text_count(tctl_stage *s)
{
    return s->count;
}

static uint32_t text_describe(tctl_stage *s, tctl_field *fields, uint32_t cap)
{
    const int64_t context = (int64_t)s->context;
    const tctl_field all[2] = {
        {"tokens", TCTL_U8, 0, 1, 0, {context, 0, 0, 0, 0, 0}},
        {"label", TCTL_I64, 0, 1, 0, {context, 0, 0, 0, 0, 0}},
    };
    for (uint32_t i = 0; i < 2 && i < cap; i++)
        fields[i] = all[i];
    return 2;
}

static tctl_status text_read(tctl_stage *s, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    (void)err;
    const unsigned char *from = s->bytes + s->first + sample * s->stride;
    int64_t *labels = out[1].data;
    memcpy(out[0].data, from, (size_t)s->context);
    for (uint64_t i = 0; i < s->context; i++)
        labels[i] = from[i + 1];
    return TCTL_OK;
}

static const tctl_option options[] = {
    {"files", TCTL_PATH, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC | TCTL_OPT_HASHED | TCTL_OPT_REPEATED, NULL, 0,
     0, 0, 0, NULL, NULL, "the text; several files are read one behind the other", "0.1.0"},
    {"context", TCTL_INT, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC, NULL, 1, 1048576, 0, 0, NULL, "bytes",
     "length of a sample", "0.1.0"},
    {"stride", TCTL_INT, TCTL_OPT_SEMANTIC, NULL, 1, 1048576, 0, 0, NULL, "bytes",
     "from one sample to the next; the context if not given, so that samples do not overlap", "0.1.0"},
    {"skip", TCTL_INT, TCTL_OPT_SEMANTIC, "0", 0, INT64_MAX, 0, 0, NULL, "bytes",
     "left out at the beginning of the text", "0.1.0"},
    {"length", TCTL_INT, TCTL_OPT_SEMANTIC, NULL, 2, INT64_MAX, 0, 0, NULL, "bytes",
     "use only so many behind those; all if not given", "0.1.0"},
};

static const tctl_source source = {sizeof source, 0, text_count, text_describe, text_read};

static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    TCTL_COUNT_OF(options),
    TCTL_COUNT_OF(extensions),
    TCTL_BITS_RECIPE,
    TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    0,
    0,
    "text",
    "0.1.0",
    "Apache-2.0",
    "windows of a text and the bytes that follow",
    options,
    extensions,
    text_create,
    text_destroy,
};
