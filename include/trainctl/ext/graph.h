/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.graph/1": rewrites the model before it is built, or before it is exported.
 */
#ifndef TRAINCTL_EXT_GRAPH_H
#define TRAINCTL_EXT_GRAPH_H

#include "trainctl/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_GRAPH_ID "trainctl.graph/1"

typedef struct tctl_graph {
    uint32_t struct_size, reserved;
    /* Called in the order of `stages:`, once, before parameters exist. Whatever it adds takes its parameters'
     * initial values from streams named after the nodes, so other nodes' weights do not change. [main] */
    tctl_status (*rewrite)(tctl_stage *, tctl_model *, const tctl_model_service *, tctl_error *);
} tctl_graph;

#ifdef __cplusplus
}
#endif

#endif
