/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what torch.save wrote before 1.6: pickles, then storages. See content_target.h. */
#include "tests/fuzz/content_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return try_lister(tctl_list_torch_legacy, data, size, NULL);
}
