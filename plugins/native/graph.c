/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that rewrite the model before it is built. */
#include "trainctl/ext/graph.h"
#include "plugins/native/trainer.h"

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
    return TCTL_OK;
}
