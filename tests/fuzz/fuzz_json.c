/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text: what is read and written canonically is its own canonical form, and the pretty form has the same one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The canonical form of a text; NULL if it has none. */
static char *canonical(const char *text, size_t size)
{
    json_t *value = NULL;
    tctl_error err;
    tctl_buf out = TCTL_BUF_INIT;
    char *result = NULL;
    if (tctl_json_parse("fuzz", text, size, &value, &err) == TCTL_OK &&
        tctl_json_canonical(value, &out, &err) == TCTL_OK)
        result = tctl_buf_detach(&out);
    tctl_buf_release(&out);
    json_decref(value);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *once = canonical((const char *)data, size);
    if (!once)
        return 0;
    char *twice = canonical(once, strlen(once));
    TCTL_BUG_IF(!twice || strcmp(once, twice) != 0);
    json_t *value = NULL;
    tctl_buf pretty = TCTL_BUF_INIT;
    TCTL_BUG_IF(tctl_json_parse("fuzz", once, strlen(once), &value, NULL) != TCTL_OK);
    TCTL_BUG_IF(tctl_json_pretty(value, &pretty, NULL) != TCTL_OK);
    char *again = canonical(pretty.data, pretty.size);
    TCTL_BUG_IF(!again || strcmp(once, again) != 0);
    tctl_buf_release(&pretty);
    json_decref(value);
    free(once);
    free(twice);
    free(again);
    return 0;
}
