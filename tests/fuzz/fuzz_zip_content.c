/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a zip archive with what is in it (npz, torch.save). See content_target.h. */
#include "tests/fuzz/content_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return try_lister(tctl_list_zip, data, size, NULL);
}
