/* SPDX-License-Identifier: Apache-2.0 */
/* Between torch_tree.c, which walks the values, and torch_tensor.c, which knows tensors. */
#ifndef TCTL_MANIFEST_CONTENT_TORCH_TREE_H
#define TCTL_MANIFEST_CONTENT_TORCH_TREE_H

#include "manifest/content/torch.h"

/* The storage that a persistent id means, numbered; NULL if it means something else. TCTL_EFORMAT if the file does not
 * have it. */
tctl_status tctl_torch_storage(tctl_torch *, const tctl_pickled *persistent, tctl_storage **ret,
                               const char **ret_type, uint64_t *ret_n, tctl_error *err);
/* Lists an object at the tree's path if it is a tensor or a parameter. */
tctl_status tctl_torch_list_tensor(tctl_torch *, const tctl_pickled *object, bool *ret_done, tctl_error *err);
tctl_status tctl_torch_list_storage(tctl_torch *, const tctl_pickled *persistent, bool *ret_done,
                                    tctl_error *err);

#endif
