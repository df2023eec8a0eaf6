/* SPDX-License-Identifier: Apache-2.0 */
/* See rivals.h. Signatures are those of the libraries' public C headers (cblas.h, dnnl.h 2 and 3). */
#include "bench/rivals.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void cblas_sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef int dnnl_sgemm_fn(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                          int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef struct dnnl_version_head {
    int major, minor, patch;
} dnnl_version_head;
typedef const dnnl_version_head *dnnl_version_fn(void);
typedef void set_threads_fn(int n);
typedef const char *openblas_config_fn(void);

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

static void multiply_cblas(const bench_rival *r, const bench_product *p)
{
    cblas_sgemm_fn *gemm = (cblas_sgemm_fn *)(uintptr_t)r->gemm;
    gemm(ROW_MAJOR, p->transpose_a ? TRANSPOSE : NO_TRANSPOSE, p->transpose_b ? TRANSPOSE : NO_TRANSPOSE,
         (int)p->m, (int)p->n, (int)p->k, 1, p->a, (int)(p->transpose_a ? p->m : p->k), p->b,
         (int)(p->transpose_b ? p->k : p->n), 0, p->c, (int)p->n);
}

static void multiply_dnnl(const bench_rival *r, const bench_product *p)
{
    dnnl_sgemm_fn *gemm = (dnnl_sgemm_fn *)(uintptr_t)r->gemm;
    gemm(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', (int64_t)p->m, (int64_t)p->n, (int64_t)p->k,
         1, p->a, (int64_t)(p->transpose_a ? p->m : p->k), p->b, (int64_t)(p->transpose_b ? p->k : p->n), 0,
         p->c, (int64_t)p->n);
}

static void set_threads(const bench_rival *r, int n)
{
    if (r->threads)
        ((set_threads_fn *)(uintptr_t)r->threads)(n);
}

static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool open_openblas(bench_rival *r)
{
    void *library = open_first((const char *const[]){"libopenblas.so.0", NULL});
    if (!library)
        return false;
    void *config = dlsym(library, "openblas_get_config");
    r->gemm = dlsym(library, "cblas_sgemm");
    r->threads = dlsym(library, "openblas_set_num_threads");
    r->multiply = multiply_cblas;
    if (config) { /* "OpenBLAS 0.3.21 NO_LAPACKE …" */
        const char *text = ((openblas_config_fn *)(uintptr_t)config)();
        const char *word = strchr(text, ' ');
        word = word ? word + 1 : text;
        snprintf(r->version, sizeof r->version, "%.*s", (int)strcspn(word, " "), word);
    }
    return r->gemm && r->threads;
}

/* Its threads are OpenMP's. */
static bool open_onednn(bench_rival *r)
{
    void *library = open_first((const char *const[]){"libdnnl.so.3", "libdnnl.so.2", NULL});
    void *openmp = open_first((const char *const[]){"libgomp.so.1", NULL});
    if (!library || !openmp)
        return false;
    r->library = library;
    void *version = dlsym(library, "dnnl_version");
    r->gemm = dlsym(library, "dnnl_sgemm");
    r->threads = dlsym(openmp, "omp_set_num_threads");
    r->multiply = multiply_dnnl;
    if (version) {
        const dnnl_version_head *v = ((dnnl_version_fn *)(uintptr_t)version)();
        snprintf(r->version, sizeof r->version, "%d.%d.%d", v->major, v->minor, v->patch);
    }
    return r->gemm && r->threads;
}

static bool open_mkl(bench_rival *r)
{
    void *library = open_first((const char *const[]){"libmkl_rt.so", "libmkl_rt.so.2", NULL});
    if (!library)
        return false;
    r->gemm = dlsym(library, "cblas_sgemm");
    r->threads = dlsym(library, "MKL_Set_Num_Threads");
    r->multiply = multiply_cblas;
    return r->gemm && r->threads;
}

bool bench_rival_open(const char *name, bench_rival *ret)
{
    *ret = (bench_rival){.set_threads = set_threads, .version = "?"};
    if (strcmp(name, "openblas") == 0) {
        ret->name = "OpenBLAS";
        return open_openblas(ret);
    }
    if (strcmp(name, "onednn") == 0) {
        ret->name = "oneDNN";
        return open_onednn(ret);
    }
    if (strcmp(name, "mkl") == 0) {
        ret->name = "MKL";
        return open_mkl(ret);
    }
    return false;
}
