/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtrainctl-trace.so: what the Python shim's trace can't do in Python. Called through ctypes, which releases the
 * interpreter's lock; nothing here touches Python.
 *
 * Errors are numbers other than 0, with a text in the caller's `message` of `size` bytes. A trace is used by one thread at
 * a time; digests are [any].
 */
#ifndef TCTL_PYTHON_TRACE_LIBRARY_H
#define TCTL_PYTHON_TRACE_LIBRARY_H

#include <stdint.h>

#include "manifest/trace.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * ret[2 i], ret[2 i + 1] = lo, hi of the digest (XXH3-128) of sizes[i] bytes at data[i], aligned to an element, with the
 * seed salts[i]. kind[i]: 1 bfloat16, 2 float16, 4 float32, 8 float64, 0 anything else; a float's NaNs count as one
 * value. A NULL has the digest 0, 0: there is no such tensor.
 */
EXPORT void trainctl_trace_digest(uint32_t n, const void *const *data, const uint64_t *sizes,
                                  const int32_t *kind, const uint64_t *salts, uint64_t *ret);
/* A number for a text: of a dtype and shape, say. */
EXPORT uint64_t trainctl_trace_salt(const void *text, uint64_t size);

/* Makes the trace, or goes on with one of the same n fields (kind: TCTL_TRACE_…); *ret_last is its last step, 0. */
EXPORT int trainctl_trace_open(const char *path, uint32_t n, const char *const *names, const int32_t *kind,
                               tctl_trace_file **ret, uint64_t *ret_last, char *message, uint64_t size);
/* Appends a record of n values and hands it to the kernel: the file stays open as long as the process lives. */
EXPORT int trainctl_trace_append(tctl_trace_file *, uint64_t step, const tctl_trace_value *values,
                                 char *message, uint64_t size);

#endif
