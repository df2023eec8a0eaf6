/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a whole file with the host's memory and the host's words for errors. */
#ifndef IDX_FILE_H
#define IDX_FILE_H

#include "trainctl/host/services.h"
#include "trainctl/plugin.h"

/* Reads the regular file `path`, which option `option` names; the caller releases *ret with memory->release.
 * TCTL_ESPEC at the option if there is no such file or it is no file, TCTL_EIO, TCTL_ENOMEM. */
tctl_status idx_file_read(const tctl_host *, const tctl_config *, const tctl_memory *, const char *option,
                          const char *path, unsigned char **ret, size_t *ret_size, tctl_error *err);

#endif
