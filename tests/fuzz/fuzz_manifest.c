/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest is foreign bytes: parse, check, and compare it with itself and with nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "manifest/compare.h"
#include "manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tctl_error err = {0};
    tctl_sha256 digest;
    json_t *value = NULL, *nothing = json_object();
    if (tctl_json_parse("manifest.json", (const char *)data, size, &value, &err) == TCTL_OK) {
        json_t *outputs = json_object_get(value, "outputs");
        if (tctl_manifest_check(value, "manifest.json", &err) == TCTL_OK &&
            tctl_result_digest(outputs, NULL, 0, &digest, &err) != TCTL_OK)
            abort(); /* a manifest that was accepted can be digested */
        json_t *same = tctl_compare_json(value, value, 10), *other = tctl_compare_json(value, nothing, 10);
        json_t *changed = tctl_compare_outputs(outputs, nothing);
        if (json_array_size(same) != 0)
            abort();
        json_decref(same);
        json_decref(other);
        json_decref(changed);
    }
    json_decref(value);
    json_decref(nothing);
    return 0;
}
