/* SPDX-License-Identifier: Apache-2.0 */
/* See events.h. */
#include "host/events.h"

#include <jansson.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/json.h"
#include "manifest/path_json.h"

#define WAIT_MS 1000

void tctl_event_send(int fd, const char *line, bool important)
{
    if (fd < 0)
        return;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, important ? WAIT_MS : 0) != 1 || !(ready.revents & POLLOUT))
        return;
    struct iovec parts[2] = {{(void *)(uintptr_t)line, strlen(line)}, {(void *)(uintptr_t) "\n", 1}};
    ssize_t ignored = writev(fd, parts, 2); /* a reader that is gone is no reason to stop */
    (void)ignored;
}

void tctl_event_phase(int fd, const char *phase, const char *who)
{
    if (fd < 0)
        return;
    json_t *event = json_pack("{s:s, s:o}", "phase", phase, "plugin", tctl_path_to_json(who));
    tctl_buf line = TCTL_BUF_INIT;
    if (event && !tctl_json_canonical(event, &line, NULL) && tctl_buf_text(&line))
        tctl_event_send(fd, tctl_buf_text(&line), true);
    tctl_buf_release(&line);
    json_decref(event);
}
