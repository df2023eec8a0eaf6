/* SPDX-License-Identifier: Apache-2.0 */
/* flatten: an image becomes features, in the order height, width, channel. Nothing moves. */
#include "engine/op.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    (void)site;
    (void)err;
    self->out = (tctl_shape){1, 1, 1, tctl_shape_count(&self->in[0])};
    return TCTL_OK;
}

const tctl_op tctl_op_flatten = {
    .schema = &tctl_network_op_table[TCTL_OP_FLATTEN],
    .flags = TCTL_OP_ALIAS,
    .infer = infer,
};
