/* SPDX-License-Identifier: Apache-2.0 */
/* tokens: an image becomes a sequence, its pixels in the order (row, column). Nothing moves. */
#include "engine/op.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    (void)site;
    char text[TCTL_OP_TEXT];
    const tctl_shape *in = &self->in[0];
    if (in->rank != 3)
        return tctl_op_fail(self, err, "needs an image [height, width, channels]; its input is %s",
                            tctl_shape_text(in, text));
    self->out = (tctl_shape){2, in->height * in->width, 1, in->channels};
    return TCTL_OK;
}

const tctl_op tctl_op_tokens = {
    .schema = &tctl_network_op_table[TCTL_OP_TOKENS],
    .flags = TCTL_OP_ALIAS,
    .infer = infer,
};
