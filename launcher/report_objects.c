/* SPDX-License-Identifier: Apache-2.0 */
/* The shared objects that processes of a run reported, hashed: the manifest's "shared_objects". See report_interposer.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "launcher/report_gather.h"
#include "launcher/report_interposer.h"
#include "manifest/environment.h"
#include "manifest/path_json.h"

/* `path` with the folder of one of the places replaced by its name; from malloc, NULL if memory is out. */
static char *shown_path(const char *path, const tctl_object_place *places)
{
    tctl_buf text = TCTL_BUF_INIT;
    const tctl_object_place *best = NULL;
    size_t length = 0;
    for (const tctl_object_place *p = places; p != NULL && p->folder != NULL; p++) {
        size_t n = strlen(p->folder);
        if (n > length && strncmp(path, p->folder, n) == 0 && path[n] == '/') {
            best = p;
            length = n;
        }
    }
    tctl_buf_add_text(&text, best == NULL ? "" : best->name);
    tctl_buf_add_text(&text, path + length);
    return tctl_buf_detach(&text);
}

static json_t *object_json(const json_t *object, const tctl_object_place *places, tctl_stat_cache *cache)
{
    char *path = NULL, *shown = NULL;
    const json_t *identity = json_object_get(object, "identity");
    const char *build_id = json_string_value(json_object_get(object, "build_id"));
    if (tctl_path_from_json(json_object_get(object, "path"), &path, NULL) != TCTL_OK)
        return NULL;
    struct stat loaded = {
        .st_dev = (dev_t)json_integer_value(json_array_get(identity, 0)),
        .st_ino = (ino_t)json_integer_value(json_array_get(identity, 1)),
        .st_size = (off_t)json_integer_value(json_array_get(identity, 2)),
        .st_mtim = {.tv_sec = json_integer_value(json_array_get(identity, 3)),
                    .tv_nsec = json_integer_value(json_array_get(identity, 4))},
    };
    json_t *made = tctl_shared_object(cache, path, build_id, &loaded);
    shown = shown_path(path, places);
    if (shown == NULL || json_object_set_new(made, "path", tctl_path_to_json(shown)) != 0) {
        json_decref(made);
        made = NULL;
    }
    free(shown);
    free(path);
    return made;
}

json_t *tctl_interposer_shared_objects(const tctl_interposer_report *report, const tctl_object_place *places,
                                       tctl_stat_cache *cache)
{
    json_t *map = json_object(), *object, *list = NULL;
    size_t i;
    bool good = map != NULL;
    json_array_foreach(report->objects, i, object)
    {
        json_t *made = good ? object_json(object, places, cache) : NULL;
        tctl_buf key = TCTL_BUF_INIT; /* path, then digest: one that many found is there once */
        const char *path = json_string_value(json_object_get(made, "path")),
                   *digest = json_string_value(json_object_get(made, "sha256"));
        tctl_buf_add_format(&key, "%s\n%s", path == NULL ? "" : path, digest == NULL ? "" : digest);
        good = made != NULL && tctl_buf_text(&key) != NULL;
        if (good && strcmp(tctl_path_base(path), "libtrainctl-det.so") != 0) /* is in the envelope's record */
            good = json_object_set(map, tctl_buf_text(&key), made) == 0;
        tctl_buf_release(&key);
        json_decref(made);
    }
    if (good)
        list = tctl_gather_sorted(map);
    json_decref(map);
    return list;
}
