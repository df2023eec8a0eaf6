/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that rewrite the model before it is built. */
#include "trainctl/ext/graph.h"
#include "plugins/native/trainer.h"

/* Attributes with a dot are wishes of stages ("amp.dtype"). One that would change results and is not understood must
 * not be passed over in silence; "memory.*" changes none. */
static tctl_status check_wishes(const tctl_job *job, tctl_error *err)
{
    for (uint32_t i = 0; i < job->models->n_nodes(job->model); i++) {
        const tctl_node *node = job->models->node(job->model, i);
        for (uint32_t k = 0; k < node->n_attrs; k++) {
            const char *name = node->attrs[k].name;
            if (strchr(name, '.') && strncmp(name, "memory.", 7) != 0)
                return tctl_fail(err, TCTL_EUNSUPPORTED,
                                 "the native trainer does not know '%s', which a stage asks for at node '%s'",
                                 name, node->name);
        }
    }
    return TCTL_OK;
}

tctl_status tctl_native_rewrite(const tctl_job *job, tctl_error *err)
{
    for (uint32_t i = 0; i < job->n_stages; i++) {
        const tctl_part *stage = &job->stages[i];
        const tctl_graph *graph = tctl_plugin_extension(stage->plugin, TCTL_GRAPH_ID);
        if (!graph)
            continue;
        tctl_status st = graph->rewrite(stage->stage, job->model, job->models, err);
        if (st) {
            tctl_note(err, "while stage '%s' rewrote the model", stage->name);
            return st;
        }
    }
    return check_wishes(job, err);
}
