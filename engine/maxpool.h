/* SPDX-License-Identifier: Apache-2.0 */
/* What a max-pool is, for the operator that takes it along (fuse.c). */
#ifndef TCTL_ENGINE_MAXPOOL_H
#define TCTL_ENGINE_MAXPOOL_H

#include "engine/op.h"
#include "engine/patches.h"

const tctl_window *tctl_maxpool_window(const tctl_operation *);

#endif
