/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as JSON with volatile places. See content_target.h. */
#include "tests/fuzz/content_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"time", "a/*/b", "**/c", NULL};
    const tctl_content_rules rules = {.volatile_paths = paths};
    return try_lister(tctl_list_json, data, size, &rules);
}
