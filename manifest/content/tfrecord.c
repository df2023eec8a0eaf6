/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorBoard's event files: records that hold Event messages (tensorflow/core/util/event.proto, .../summary.proto).
 *
 * Both CRCs of every record are checked. Of an Event its wall_time and file_version do not count; the rest does, the
 * values of a summary one by one. Only the wire format of protocol buffers is read, and only as deep as needed. Records
 * that are no Events (a data set) are listed as bytes.
 */
#include "manifest/content/tfrecord.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "manifest/content/walk.h"

#define RECORD_LIMIT ((uint64_t)256 << 20)

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* What is left of a message. */
typedef struct message {
    const unsigned char *at, *end;
} message;

typedef struct field {
    uint64_t number;
    unsigned wire;
    uint64_t value; /* varint and fixed */
    message bytes;  /* WIRE_BYTES; for the others the value as it is written */
} field;

typedef struct event_file {
    tctl_listing *listing;
    tctl_source *from;
    tctl_error *err;
    uint64_t at, index; /* offset and number of the record */
    bool events;
} event_file;

static tctl_status damaged(const event_file *f, const char *why)
{
    return tctl_fail(f->err, TCTL_EFORMAT,
                     "'%s' is cut short or damaged: record %" PRIu64 ", at byte %" PRIu64 ": %s",
                     f->from->name, f->index, f->at, why);
}

/* ---- protocol buffers ------------------------------------------------------------------------------------------ */

static bool take_varint(message *m, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char byte = *m->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(message *m, uint64_t n, message *ret)
{
    if (n > (uint64_t)(m->end - m->at))
        return false;
    *ret = (message){m->at, m->at + n};
    m->at += n;
    return true;
}

/* The next field of a message that has not ended; false if it is malformed. Groups are not used any more. */
static bool take_field(message *m, field *ret)
{
    uint64_t key = 0, n = 0;
    if (!take_varint(m, &key))
        return false;
    *ret = (field){.number = key >> 3, .wire = (unsigned)(key & 7)};
    const unsigned char *start = m->at;
    switch (ret->wire) {
    case WIRE_VARINT:
        if (!take_varint(m, &ret->value))
            return false;
        ret->bytes = (message){start, m->at};
        return true;
    case WIRE_FIXED64:
        if (!take_bytes(m, 8, &ret->bytes))
            return false;
        ret->value = tctl_get_u64(ret->bytes.at);
        return true;
    case WIRE_FIXED32:
        if (!take_bytes(m, 4, &ret->bytes))
            return false;
        ret->value = tctl_get_u32(ret->bytes.at);
        return true;
    case WIRE_BYTES:
        return take_varint(m, &n) && take_bytes(m, n, &ret->bytes);
    default:
        return false;
    }
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

static tctl_status line(const event_file *f, const char *name, const char *words)
{
    char path[320];
    snprintf(path, sizeof path, "[%" PRIu64 "]%s%s", f->index, name[0] != '\0' ? "/" : "", name);
    return tctl_list_value(f->listing, path, words, f->err);
}

static tctl_status line_digest(const event_file *f, const char *name, const char *word, message bytes)
{
    char hex[TCTL_SHA256_HEX], words[128];
    tctl_sha256 digest = tctl_sha256_of(bytes.at, (size_t)(bytes.end - bytes.at));
    tctl_sha256_hex(&digest, hex);
    snprintf(words, sizeof words, "%s %zu %s", word, (size_t)(bytes.end - bytes.at), hex);
    return line(f, name, words);
}

/* A scalar by its bits, so that the difference of two has a distance; all else by its digest. */
static tctl_status list_value(const event_file *f, message value)
{
    char tag[256] = "", words[32];
    message all = value;
    bool simple = false;
    field one;
    uint64_t bits = 0;
    size_t others = 0;
    while (value.at < value.end) {
        if (!take_field(&value, &one))
            return damaged(f, "a value of a summary can't be read");
        if (one.number == VALUE_TAG && one.wire == WIRE_BYTES) {
            size_t n = (size_t)(one.bytes.end - one.bytes.at);
            snprintf(tag, sizeof tag, "%.*s", (int)(n < sizeof tag ? n : sizeof tag - 1),
                     (const char *)one.bytes.at);
        } else if (one.number == VALUE_SIMPLE && one.wire == WIRE_FIXED32) {
            simple = true;
            bits = one.value;
        } else {
            others++;
        }
    }
    if (!simple || others > 0)
        return line_digest(f, tag, "value", all);
    snprintf(words, sizeof words, "float32 %08" PRIx64, bits);
    return line(f, tag, words);
}

static tctl_status list_summary(const event_file *f, message summary)
{
    field one;
    tctl_status st = TCTL_OK;
    while (st == TCTL_OK && summary.at < summary.end) {
        if (!take_field(&summary, &one))
            return damaged(f, "a summary can't be read");
        st = one.number == SUMMARY_VALUE && one.wire == WIRE_BYTES ? list_value(f, one.bytes)
                                                                   : line_digest(f, "", "field", one.bytes);
    }
    return st;
}

static tctl_status list_event(const event_file *f, message event)
{
    char words[48];
    field one;
    tctl_status st = line(f, "", "event");
    while (st == TCTL_OK && event.at < event.end) {
        if (!take_field(&event, &one))
            return damaged(f, "an event can't be read");
        if (one.number == EVENT_WALL_TIME || one.number == EVENT_FILE_VERSION)
            continue;
        if (one.number == EVENT_STEP && one.wire == WIRE_VARINT) {
            snprintf(words, sizeof words, "step %" PRId64, (int64_t)one.value);
            st = line(f, "", words);
        } else if (one.number == EVENT_SUMMARY && one.wire == WIRE_BYTES) {
            st = list_summary(f, one.bytes);
        } else {
            snprintf(words, sizeof words, "field-%" PRIu64, one.number);
            st = line_digest(f, words, "field", one.bytes);
        }
    }
    return st;
}

/* The first event of a file says "brain.Event:2" as its file_version. */
static bool is_first_event(message event)
{
    static const char version[] = "brain.Event:";
    field one;
    while (event.at < event.end && take_field(&event, &one)) {
        if (one.number == EVENT_FILE_VERSION && one.wire == WIRE_BYTES)
            return (size_t)(one.bytes.end - one.bytes.at) >= sizeof version - 1 &&
                   memcmp(one.bytes.at, version, sizeof version - 1) == 0;
    }
    return false;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* *ret from malloc. */
static tctl_status read_record(event_file *f, unsigned char **ret, size_t *ret_n)
{
    unsigned char header[12], crc[4];
    uint64_t rest = f->from->size - f->at;
    if (rest < sizeof header)
        return damaged(f, "its header is not whole");
    tctl_status st = tctl_source_read(f->from, f->at, header, sizeof header, f->err);
    if (st != TCTL_OK)
        return st;
    uint64_t n = tctl_get_u64(header);
    if (!tctl_tfrecord_starts(header, sizeof header))
        return damaged(f, "the CRC-32C of its length is wrong");
    if (rest - sizeof header < sizeof crc || n > rest - sizeof header - sizeof crc)
        return damaged(f, "it is longer than what is left of the file");
    if (n > RECORD_LIMIT)
        return tctl_fail(f->err, TCTL_EUNSUPPORTED, "'%s' has a record of %" PRIu64 " bytes", f->from->name,
                         n);
    unsigned char *bytes = malloc(n > 0 ? (size_t)n : 1);
    if (bytes == NULL)
        return tctl_fail_memory(f->err, (size_t)n);
    st = tctl_source_read(f->from, f->at + sizeof header, bytes, (size_t)n, f->err);
    if (st == TCTL_OK)
        st = tctl_source_read(f->from, f->at + sizeof header + n, crc, sizeof crc, f->err);
    if (st == TCTL_OK && tctl_crc32c_masked(bytes, (size_t)n) != tctl_get_u32(crc))
        st = damaged(f, "the CRC-32C of its bytes is wrong");
    if (st != TCTL_OK) {
        free(bytes);
        return st;
    }
    *ret = bytes;
    *ret_n = (size_t)n;
    return TCTL_OK;
}

tctl_status tctl_list_tensorboard(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    event_file f = {.listing = l, .from = s, .err = err};
    tctl_status st = TCTL_OK;
    while (st == TCTL_OK && f.at < s->size) {
        unsigned char *bytes = NULL;
        size_t n = 0;
        st = tctl_walk_spend(l->walk, 1, err);
        if (st == TCTL_OK)
            st = read_record(&f, &bytes, &n);
        if (st != TCTL_OK)
            break;
        message record = {bytes, bytes + n};
        if (f.index == 0)
            f.events = is_first_event(record);
        st = f.events ? list_event(&f, record) : line_digest(&f, "", "bytes", record);
        free(bytes);
        f.at += n + 16;
        f.index++;
    }
    *ret_format = f.events ? "tensorboard" : "tfrecord";
    return st;
}
