/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status codes shared by the host, the plugins and every room of the tree.
 *
 * A function that can fail returns a tctl_status: 0 on success, a negative TCTL_E… otherwise. The words
 * that explain a failure travel beside the code, in a tctl_error that the caller owns.
 */
#ifndef TRAINCTL_STATUS_H
#define TRAINCTL_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t tctl_status;

enum {
    TCTL_OK = 0,
    TCTL_EINVAL = -1,        /* an argument or option is outside what is documented */
    TCTL_EIO = -2,           /* the operating system refused to read or write */
    TCTL_ENOMEM = -3,        /* memory could not be had; the message says how much was asked for */
    TCTL_ENOENT = -4,        /* a thing that was named does not exist */
    TCTL_EFORMAT = -5,       /* bytes of a file are not what its format says; path, offset and reason */
    TCTL_ESPEC = -6,         /* the experiment spec is wrong; file, line and column */
    TCTL_EPLUGIN = -7,       /* a plugin can't be loaded, or broke its contract */
    TCTL_ECHANGED = -8,      /* a recorded thing is not what it was */
    TCTL_ENOSPC = -9,        /* disk full or quota used up */
    TCTL_EDETERMINISM = -10, /* the promise asked for can't be kept here */
    TCTL_ECANCELED = -11,    /* somebody asked to stop */
    TCTL_EUNSUPPORTED = -12, /* correct, but not something this build or plugin can do */
    TCTL_EBUSY = -13         /* somebody else holds it */
};

#ifdef __cplusplus
}
#endif

#endif
