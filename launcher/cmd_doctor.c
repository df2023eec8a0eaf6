/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainctl doctor: which contract can be kept here, knob by knob, and what would help.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "config/diag.h"
#include "launcher/command.h"
#include "launcher/doctor.h"
#include "launcher/variables.h"
#include "manifest/environment.h"
#include "manifest/path_json.h"

static const char *contract_name(int32_t contract)
{
    return contract == TCTL_CONTRACT_EXACT     ? "exact"
           : contract == TCTL_CONTRACT_MACHINE ? "machine"
                                               : "nothing";
}

void tctl_doctor_add(tctl_doctor *d, const char *check, int32_t best, bool warning, const char *fix,
                     const char *fmt, ...)
{
    TCTL_BUG_IF(d->n == sizeof d->findings / sizeof d->findings[0]);
    tctl_error text = {0}; /* to format: bounded */
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(&text, TCTL_EINVAL, fmt, ap);
    va_end(ap);
    const char *what = tctl_arena_copy(d->arena, text.message, strlen(text.message));
    d->findings[d->n++] = (tctl_finding){
        .check = check, .what = what ? what : "memory is out", .fix = fix, .best = best, .warning = warning};
}

void tctl_doctor_spec(tctl_doctor *d)
{
    const tctl_spec *spec = d->spec;
    if (!spec)
        return;
    const char *asked = spec->contract == TCTL_CONTRACT_OFF ? "off" : contract_name(spec->contract);
    if (spec->command && spec->contract == TCTL_CONTRACT_EXACT)
        tctl_doctor_add(
            d, "spec", TCTL_CONTRACT_MACHINE, false, "write 'contract: machine'",
            "it asks for 'exact', which only 'train:' can keep; a command of your own can keep 'machine'");
    else
        tctl_doctor_add(
            d, "spec", spec->command ? TCTL_CONTRACT_MACHINE : TCTL_CONTRACT_EXACT, false, NULL,
            "'%s' %s and asks for '%s'", spec->name,
            spec->command ? "runs a command, which can keep 'machine' at best," : "trains natively", asked);
}

/* ---- printing ------------------------------------------------------------------------------------------------ */

static const char *mark(const tctl_finding *f)
{
    if (f->best != TCTL_CONTRACT_EXACT)
        return contract_name(f->best);
    return f->warning ? "warning" : "ok";
}

static void print_text(const tctl_doctor *d, int32_t best, const char *verdict)
{
    for (size_t i = 0; i < d->n; i++) {
        const tctl_finding *f = &d->findings[i];
        printf("%-8s  %-16s  %s\n", mark(f), f->check, f->what);
        if (f->fix && (f->warning || f->best != TCTL_CONTRACT_EXACT))
            printf("%-8s  %-16s  fix: %s\n", "", "", f->fix);
    }
    static const char *const meaning[] = {
        [TCTL_CONTRACT_EXACT] =
            "the same bits on every machine that can keep it, whatever the threads and workers",
        [TCTL_CONTRACT_MACHINE] = "the same bits on machines of this class",
        [TCTL_CONTRACT_OFF] =
            "no run starts here, or it cannot be recorded, or its arithmetic is not trustworthy",
    };
    printf("\n%s: %s (%s)\n", verdict, contract_name(best), meaning[best]);
}

static json_t *make_json(const tctl_doctor *d, int32_t best, bool kept)
{
    json_t *checks = json_array();
    for (size_t i = 0; checks && i < d->n; i++) {
        const tctl_finding *f = &d->findings[i];
        json_t *entry = json_pack("{s:s, s:s, s:s, s:o, s:s?}", "check", f->check, "state", mark(f), "best",
                                  contract_name(f->best), "what", tctl_path_to_json(f->what), "fix", f->fix);
        if (json_array_append_new(checks, entry) != 0) {
            json_decref(checks);
            checks = NULL;
        }
    }
    return json_pack("{s:s, s:b, s:o, s:O}", "contract", contract_name(best), "kept", kept, "checks", checks,
                     "environment", d->environment);
}

/* ---- the command --------------------------------------------------------------------------------------------- */

typedef struct patient {
    tctl_plugins *plugins;
    tctl_spec *spec;
    json_t *environment;
} patient;

/* Reads the spec, if there is one; prints what is wrong with it. */
static int load_spec(tctl_command_line *line, const char *program, patient *p)
{
    tctl_error err = {0};
    tctl_diags diags = {0};
    tctl_buf text = TCTL_BUF_INIT;
    tctl_spec_request request = {.path = line->args[0]};
    if (tctl_plugins_create(program, &p->plugins, &err) != TCTL_OK)
        return tctl_cli_fail(line, &err);
    tctl_plugin_finder finder = tctl_plugins_finder(p->plugins);
    tctl_status status = tctl_spec_load(&request, &finder, &p->spec, &diags);
    if (status != TCTL_OK) {
        tctl_diags_render(&diags, p->spec ? p->spec->text : NULL, p->spec ? p->spec->text_size : 0,
                          line->colour, &text);
        const char *rendered = tctl_buf_text(&text);
        fputs(rendered ? rendered : "trainctl: error: out of memory\n", stderr);
    }
    tctl_buf_release(&text);
    tctl_diags_release(&diags);
    return tctl_cli_exit_code(status);
}

static const char *spec_folder(tctl_arena *arena, const patient *p)
{
    char here[PATH_MAX];
    if (p->spec)
        return p->spec->folder;
    return getcwd(here, sizeof here) ? tctl_arena_copy(arena, here, strlen(here)) : NULL;
}

static int examine(tctl_command_line *line, const char *program, patient *p)
{
    tctl_error err = {0};
    tctl_doctor *d = tctl_arena_take(line->arena, sizeof *d);
    if (!d ||
        tctl_environment_capture((const char *const *)environ, NULL, &p->environment, &err) != TCTL_OK) {
        tctl_fail_memory(&err, sizeof *d);
        return tctl_cli_fail(line, &err);
    }
    d->arena = line->arena;
    d->program = program;
    d->spec = p->spec;
    d->environment = p->environment;
    d->folder = spec_folder(line->arena, p);
    if (!d->folder) {
        tctl_fail(&err, TCTL_EIO, "the current folder is gone");
        return tctl_cli_fail(line, &err);
    }
    tctl_doctor_machine(d);
    tctl_doctor_files(d);
    tctl_doctor_envelope(d);
    tctl_doctor_program(d);
    tctl_doctor_spec(d);
    int32_t best = TCTL_CONTRACT_EXACT; /* ascending: exact, machine, off */
    for (size_t i = 0; i < d->n; i++)
        best = d->findings[i].best > best ? d->findings[i].best : best;
    bool kept = best <= (p->spec ? p->spec->contract : TCTL_CONTRACT_EXACT);
    int code = kept ? TCTL_EXIT_OK : TCTL_EXIT_DETERMINISM;
    if (tctl_cli_has(line, "--json"))
        return tctl_cli_print_json(line, make_json(d, best, kept), code);
    print_text(d, best, p->spec ? "this spec can keep here" : "this machine can keep");
    return code;
}

/* What stands in docs/determinism.md. */
static int print_variables(const tctl_command_line *line)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_error err = {0};
    tctl_variables_reference(&text);
    bool whole = tctl_buf_text(&text) != NULL;
    if (whole)
        fputs(tctl_buf_text(&text), stdout);
    tctl_buf_release(&text);
    if (whole)
        return TCTL_EXIT_OK;
    tctl_fail_memory(&err, 0);
    return tctl_cli_fail(line, &err);
}

static int run(tctl_command_line *line)
{
    char path[PATH_MAX];
    if (tctl_cli_has(line, "--variables"))
        return print_variables(line);
    patient p = {.spec = NULL};
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    int code = line->n_args > 0 ? load_spec(line, path, &p) : TCTL_EXIT_OK;
    if (code == TCTL_EXIT_OK)
        code = examine(line, path, &p);
    json_decref(p.environment);
    tctl_spec_destroy(p.spec);
    tctl_plugins_destroy(p.plugins);
    return code;
}

static const char *const usage[] = {"[--json]", "SPEC [--json]", "--variables", NULL};
static const tctl_cli_option options[] = {
    {"--variables", NULL, "print the environment variables that trainctl knows, as Markdown", false, 0},
    {"--json", NULL, "print one object: contract, kept, checks, environment", false, 0},
    {NULL, NULL, NULL, false, 0},
};

extern const tctl_command tctl_cmd_doctor;
const tctl_command tctl_cmd_doctor = {
    .name = "doctor",
    .summary = "Tell which contract can be kept here, and why not more",
    .usage = usage,
    .options = options,
    .details =
        "Looks at the processor, the floating-point environment, preloaded libraries, variables that "
        "numerical\n"
        "libraries read, address randomisation, memory, GPU, clock, run store, cache, git repository and\n"
        "plugins; with SPEC also at the knobs that it turns off, and at the program that its command begins\n"
        "with. Each line begins with 'ok', with 'warning', or with the best contract that it leaves.\n"
        "\n"
        "Exits with 0 if 'exact' can be kept (with SPEC: if the contract that it asks for can be), with 6 "
        "if\n"
        "not, with 3 or 4 if the spec or one of its plugins is wrong.",
    .examples = "  trainctl doctor\n  trainctl doctor exp.yaml --json\n",
    .rank = 100,
    .argument = TCTL_ARG_SPEC,
    .min_args = 0,
    .max_args = 1,
    .run = run,
};
