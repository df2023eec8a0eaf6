/* SPDX-License-Identifier: Apache-2.0 */
/* One plugin's file: opened, hashed, read as ELF, loaded, compared, checked. For host/plugins.c alone. */
#ifndef TCTL_HOST_PLUGIN_FILE_H
#define TCTL_HOST_PLUGIN_FILE_H

#include "host/plugins.h"

typedef struct tctl_plugin_file_request {
    tctl_arena *arena; /* takes the result */
    const char *use;   /* for messages */
    const char *path;  /* real path */
    void (*watch)(void *arg, const char *path);
    void *watch_arg;
} tctl_plugin_file_request;

tctl_status tctl_plugin_file_load(const tctl_plugin_file_request *, tctl_loaded **ret, tctl_error *err);

#endif
