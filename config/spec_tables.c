/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a spec, as option tables: what is read, what `docs/spec.md` lists and what the schema says.
 */
#include <string.h>

#include "config/spec_read.h"
#include "trainctl/draft/envelope.h"
#include "trainctl/draft/exporter.h"
#include "trainctl/ext/graph.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/transform.h"

static const char *const contracts[] = {"exact", "machine", "off", NULL};
static const char *const devices[] = {"cpu", NULL};
static const char *const trainer[] = {TCTL_TRAINER_ID, NULL};
static const char *const source[] = {TCTL_SOURCE_ID, NULL};
static const char *const transform[] = {TCTL_TRANSFORM_ID, NULL};
static const char *const stage[] = {TCTL_GRAPH_ID, TCTL_HOOKS_ID, TCTL_EXPORTER_ID, TCTL_ENVELOPE_ID, NULL};
static const char *const addresses[] = {"fixed", "random", NULL};
static const char *const entropy[] = {"count", "seeded", NULL};
static const char *const denormals[] = {"keep", "off", NULL};
static const char *const seed_scopes[] = {"worker", "sample", NULL};
static const char *const data_section[] = {"data", "data-keys", NULL}; /* of a set; of the mapping itself */
static const char *const model_section[] = {"model", NULL};
static const char *const transforms_section[] = {"transforms", NULL};
static const char *const stages_section[] = {"stages", NULL};
static const char *const outputs_section[] = {"outputs", NULL};
static const char *const comparisons[] = {"content", "bytes", NULL};
static const char *const resources_section[] = {"resources", NULL};
static const char *const determinism_section[] = {"determinism", NULL};

static const tctl_option top[] = {
    {.name = "name",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_REQUIRED,
     .doc = "what runs of this spec are called: letters, digits, '_' and '-'",
     .since = "0.1.0"},
    {.name = "seed",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "0",
     .int_max = INT64_MAX,
     .doc = "the root of all random numbers",
     .since = "0.1.0"},
    {.name = "contract",
     .type = TCTL_ENUM,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = contracts,
     .doc = "what is promised about the bits; without it exact for 'train', machine for 'run'",
     .since = "0.1.0"},
    {.name = "data",
     .type = TCTL_SECTION_MAP,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = data_section,
     .doc = "the data sets by name; trainers look for 'train' and 'test'; 'seed_scope' is no set",
     .since = "0.1.0"},
    {.name = "model",
     .type = TCTL_SECTION_LIST,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = model_section,
     .doc = "the operators of the model, in order; needed with 'train'",
     .since = "0.1.0"},
    {.name = "train",
     .type = TCTL_PLUGIN,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = trainer,
     .doc = "the plugin that trains, and its options; either this or 'run'",
     .since = "0.1.0"},
    {.name = "stages",
     .type = TCTL_SECTION_LIST,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = stages_section,
     .doc = "what takes part in the training, in order",
     .since = "0.1.0"},
    {.name = "resources",
     .type = TCTL_SECTION,
     .choices = resources_section,
     .doc = "what decides the time and never the bits",
     .since = "0.1.0"},
    {.name = "determinism",
     .type = TCTL_SECTION,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = determinism_section,
     .doc = "single knobs of the envelope around the child; docs/determinism.md explains them",
     .since = "0.1.0"},
    {.name = "run",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC,
     .doc = "a command of your own, for the shell; either this or 'train'",
     .since = "0.1.0"},
    {.name = "outputs",
     .type = TCTL_SECTION_TEXTS,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = outputs_section,
     .doc = "with 'run': the files it leaves in $TRAINCTL_OUT that are results, by their path or with more",
     .since = "0.1.0"},
    {.name = "secrets",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_REPEATED,
     .doc = "names of environment variables that are passed on and never recorded",
     .since = "0.1.0"},
};

static const tctl_option data[] = {
    {.name = "use",
     .type = TCTL_PLUGIN,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = source,
     .doc = "the plugin that reads the samples; its options stand beside this key; needed with 'train'",
     .since = "0.1.0"},
    {.name = "transforms",
     .type = TCTL_SECTION_LIST,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = transforms_section,
     .doc = "what is done to each sample, in order; with 'use' only",
     .since = "0.1.0"},
    {.name = "path",
     .type = TCTL_PATH,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_HASHED,
     .doc = "a file or folder that the command of 'run' reads; instead of 'use'",
     .since = "0.1.0"},
};

static const tctl_option data_keys[] = {
    {.name = "seed_scope",
     .type = TCTL_ENUM,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "worker",
     .choices = seed_scopes,
     .doc = "with 'run': 'sample' seeds Python, NumPy and torch anew for each sample of a torch data set, "
            "from epoch "
            "and index, so that the number of workers changes nothing; 'worker' leaves it to the framework",
     .since = "0.1.0"},
};

static const tctl_option transforms[] = {
    {.name = "use",
     .type = TCTL_PLUGIN,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED,
     .choices = transform,
     .doc = "the plugin; its options stand beside this key",
     .since = "0.1.0"},
    {.name = "name",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC,
     .doc = "needed if the plugin is used twice; names the random streams; without it the plugin's name",
     .since = "0.1.0"},
};

static const tctl_option model[] = {
    {.name = "op",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED,
     .doc = "the operator: one of the trainer's; its options stand beside this key",
     .since = "0.1.0"},
    {.name = "name",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC,
     .doc = "names the parameters and random streams; without it the operator and its number: 'conv1'",
     .since = "0.1.0"},
    {.name = "from",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REPEATED,
     .doc = "names of earlier operators whose outputs it reads, or 'input'; without it the one before",
     .since = "0.1.0"},
};

static const tctl_option stages[] = {
    {.name = "use",
     .type = TCTL_PLUGIN,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED,
     .choices = stage,
     .doc = "the plugin; its options stand beside this key",
     .since = "0.1.0"},
    {.name = "name",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC,
     .doc = "needed if the plugin is used twice; for --set, --without and messages; without it the plugin's "
            "name",
     .since = "0.1.0"},
};

static const tctl_option outputs[] = {
    {.name = "path",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED,
     .doc = "a file or folder, relative to $TRAINCTL_OUT",
     .since = "0.1.0"},
    {.name = "volatile",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REPEATED,
     .doc = "the file is JSON, or lines of JSON, and these places in it do not count: 'time', "
            "'epochs/*/seconds', '**/seconds'",
     .since = "0.1.0"},
    {.name = "compare",
     .type = TCTL_ENUM,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "content",
     .choices = comparisons,
     .doc = "what must be the same: the content where the format is known, else the bytes; or always the "
            "bytes, and then a damaged file is no failure",
     .since = "0.1.0"},
};

static const tctl_option resources[] = {
    {.name = "threads",
     .type = TCTL_INT,
     .int_min = 1,
     .int_max = 1024,
     .doc = "compute threads; without it as many as there are processors",
     .since = "0.1.0"},
    {.name = "workers",
     .type = TCTL_INT,
     .default_yaml = "2",
     .int_max = 1024,
     .doc = "threads that load samples; 0: the training loop loads its own",
     .since = "0.1.0"},
    {.name = "prefetch",
     .type = TCTL_INT,
     .default_yaml = "4",
     .int_max = 4096,
     .unit = "batches",
     .doc = "loaded ahead; 0: none",
     .since = "0.1.0"},
    {.name = "cache",
     .type = TCTL_SIZE,
     .default_yaml = "1 GiB",
     .int_max = INT64_MAX,
     .doc = "memory for samples as read, before transforms; 0: no cache",
     .since = "0.1.0"},
    {.name = "device",
     .type = TCTL_ENUM,
     .default_yaml = "cpu",
     .choices = devices,
     .doc = "where the training computes",
     .since = "0.1.0"},
};

#define SWITCH(key, words)                                                                                   \
    {                                                                                                        \
        .name = key, .type = TCTL_BOOL, .flags = TCTL_OPT_SEMANTIC, .default_yaml = "true", .doc = words,    \
        .since = "0.1.0"                                                                                     \
    }

static const tctl_option determinism[] = {
    SWITCH("variables", "pin the environment variables by which numerical libraries choose their kernels"),
    {.name = "unpin",
     .type = TCTL_TEXT,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REPEATED,
     .doc = "names of pinned variables that are left as your shell has them, set or not",
     .since = "0.1.0"},
    {.name = "addresses",
     .type = TCTL_ENUM,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "fixed",
     .choices = addresses,
     .doc = "address space randomisation: 'fixed' switches it off where that is permitted",
     .since = "0.1.0"},
    SWITCH("interposer",
           "preload the library that the next five keys speak of, and that reports what was loaded"),
    SWITCH("sort_directories", "directories list their entries in byte order"),
    SWITCH("libc_seeds", "the C library's generators and C++'s random_device start from the run's seed"),
    {.name = "entropy",
     .type = TCTL_ENUM,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "count",
     .choices = entropy,
     .doc = "reads of the kernel's random numbers: count them, or answer them from the run's seed",
     .since = "0.1.0"},
    {.name = "denormals",
     .type = TCTL_ENUM,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "keep",
     .choices = denormals,
     .doc = "'keep' undoes a library's flush-to-zero and names the library; 'off' does not look",
     .since = "0.1.0"},
    SWITCH("python", "put the Python shim on the path, which the next four keys speak of"),
    SWITCH("python_seeds", "seed Python's and NumPy's generators before the script's first line"),
    SWITCH("torch",
           "deterministic algorithms and seeds in PyTorch, TensorFlow and JAX, where they are imported"),
    SWITCH("state_check", "notice flags that the script or a library turned back"),
    {.name = "trace",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "1",
     .int_max = 1000000000,
     .unit = "optimizer steps",
     .doc = "between records of a command's trace; 0: no trace",
     .since = "0.1.0"},
};

#define SECTION(key, table, words)                                                                           \
    {                                                                                                        \
        .name = key, .doc = words, .options = table, .n_options = TCTL_COUNT_OF(table)                       \
    }

static const tctl_spec_section sections[] = {
    SECTION("", top, "the top level of a spec"),
    SECTION("data", data, "one data set: a value of 'data'"),
    SECTION("data-keys", data_keys, "a key of 'data' itself, beside the names of data sets"),
    SECTION("transforms", transforms, "one transform of a data set"),
    SECTION("model", model, "one operator: an item of 'model'"),
    SECTION("stages", stages, "one stage: an item of 'stages'"),
    SECTION("outputs", outputs, "one output, where its path alone will not do: an item of 'outputs'"),
    SECTION("resources", resources, "the value of 'resources'"),
    SECTION("determinism", determinism,
            "the value of 'determinism'; with 'contract: off' all of it is off that is not turned on"),
};

const tctl_spec_section *tctl_spec_sections(uint32_t *ret_n)
{
    *ret_n = TCTL_COUNT_OF(sections);
    return sections;
}

const tctl_spec_section *tctl_spec_section_find(const char *name)
{
    for (size_t i = 0; i < TCTL_COUNT_OF(sections); i++) {
        if (strcmp(sections[i].name, name) == 0)
            return &sections[i];
    }
    return NULL;
}
