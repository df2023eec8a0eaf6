/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python child reported is foreign bytes. Whatever they are, the members of the manifest are made. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "launcher/report_python.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *uncontrolled = json_array(), *made = NULL;
    if (tctl_report_python_parse((const char *)data, size, uncontrolled, &made, NULL) != TCTL_OK)
        abort();
    if (json_object_size(made) != 5)
        abort();
    json_decref(made);
    json_decref(uncontrolled);
    return 0;
}
