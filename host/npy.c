/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See npy.h. The format: the magic, version 1.0, the length of a header in two little-endian bytes, the header as a
 * Python literal padded with blanks so that the data begins at a multiple of 64, the data. Source: numpy.lib.format.
 */
#include "host/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

enum { ALIGNMENT = 64, BEFORE_HEADER = 10 };

static const char *descr_of(int32_t dtype)
{
    switch (dtype) {
    case TCTL_U8:
        return "|u1";
    case TCTL_I8:
        return "|i1";
    case TCTL_I32:
        return "<i4";
    case TCTL_I64:
        return "<i8";
    case TCTL_F16:
        return "<f2";
    case TCTL_F32:
        return "<f4";
    case TCTL_F64:
        return "<f8";
    default:
        return NULL;
    }
}

static void add_header(tctl_buf *file, const tctl_tensor *t, const char *descr)
{
    tctl_buf header = TCTL_BUF_INIT;
    tctl_buf_add_format(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < t->rank; i++)
        tctl_buf_add_format(&header, "%" PRId64 ",%s", t->dims[i], i + 1 < t->rank ? " " : "");
    tctl_buf_add_text(&header, "), }");
    while ((BEFORE_HEADER + header.size + 1) % ALIGNMENT != 0 && !header.broken)
        tctl_buf_add_char(&header, ' ');
    tctl_buf_add_char(&header, '\n');
    tctl_buf_add(file, "\x93NUMPY\x01\x00", 8);
    tctl_buf_add_char(file, (char)(header.size & 0xff));
    tctl_buf_add_char(file, (char)(header.size >> 8));
    if (tctl_buf_text(&header) != NULL)
        tctl_buf_add(file, header.data, header.size);
    file->broken = file->broken || header.broken;
    tctl_buf_release(&header);
}

tctl_status tctl_npy_write(const char *path, const tctl_tensor *t, tctl_error *err)
{
    const char *descr = descr_of(t->dtype);
    tctl_buf file = TCTL_BUF_INIT;
    if (!descr)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s': NumPy has no element type %d", path, (int)t->dtype);
    char *folder = strdup(path);
    if (!folder)
        return tctl_fail_memory(err, strlen(path));
    *strrchr(folder, '/') = '\0';
    tctl_status status = tctl_make_folders(folder, 0777, err);
    free(folder);
    if (!status) {
        add_header(&file, t, descr);
        tctl_buf_add(&file, t->data, (size_t)t->size_bytes);
        status = file.broken ? tctl_fail_memory(err, (size_t)t->size_bytes)
                             : tctl_file_replace(path, file.data, file.size, 0666, err);
    }
    tctl_buf_release(&file);
    return status;
}
