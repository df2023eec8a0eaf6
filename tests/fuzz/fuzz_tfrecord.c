/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of records, TensorBoard's events among them. See content_target.h. */
#include "tests/fuzz/content_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return try_lister(tctl_list_tensorboard, data, size, NULL);
}
