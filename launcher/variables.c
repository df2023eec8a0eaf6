/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of environment variables. See variables.h. Exact names come before the patterns that cover them: the first
 * that fits counts.
 *
 * A value is "allowed" if results repeat with it run by run on one machine; whether it is fast or precise is the user's
 * choice. The sources are the vendors' own documents and sources.
 */
#include "launcher/variables.h"

#include <string.h>

enum {
    FIXED = TCTL_VARIABLE_FIXED,
    THREADS = TCTL_VARIABLE_THREADS,
    SEED = TCTL_VARIABLE_SEED,
    LIBRARY = TCTL_VARIABLE_LIBRARY,
    CHOICE = TCTL_VARIABLE_CHOICE,
    PASSED = TCTL_VARIABLE_PASSED,
    PLACE = TCTL_VARIABLE_PLACE,
    NAMED = TCTL_VARIABLE_NAMED,
    DROPPED = TCTL_VARIABLE_DROPPED,
    FAMILY = TCTL_VARIABLE_FAMILY
};

/* Intel's rule: the code path must be named, and exist on the processor. */
static const char mkl_code_path[] = "AVX2,STRICT or COMPATIBLE";

#define ONEDNN_ISAS                                                                                          \
    "DEFAULT|SSE41|AVX|AVX2|AVX2_VNNI|AVX2_VNNI_2|AVX512_CORE|AVX512_CORE_VNNI|AVX512_CORE_BF16|"            \
    "AVX512_CORE_FP16|AVX512_CORE_AMX|AVX512_CORE_AMX_FP16|ALL"
#define OPENBLAS_CORES                                                                                       \
    "Prescott|Core2|Penryn|Dunnington|Nehalem|Atom|Sandybridge|Haswell|SkylakeX|Cooperlake|SapphireRapids|"  \
    "Barcelona|Bobcat|Bulldozer|Piledriver|Steamroller|Excavator|Zen|ARMV8|CORTEXA53|CORTEXA57|CORTEXA72|"   \
    "NEOVERSEN1|NEOVERSEN2|NEOVERSEV1|THUNDERX|THUNDERX2T99|TSV110"
#define MKL_PATHS                                                                                            \
    "AUTO|COMPATIBLE|SSE2|SSE3|SSSE3|SSE4_1|SSE4_2|AVX|AVX2|AVX512|AVX512_E1|AVX2,STRICT|AVX512,STRICT|"     \
    "AVX512_E1,STRICT"

static const tctl_variable table[] = {
    /* ---- surroundings ---- */
    {"LC_ALL", FIXED, "C", NULL, "sorting, case and the form of numbers follow the locale"},
    {"LANG", DROPPED, NULL, NULL, "LC_ALL decides"},
    {"LANGUAGE", DROPPED, NULL, NULL, "LC_ALL decides"},
    {"LC_*", DROPPED, NULL, NULL, "LC_ALL decides"},
    {"TZ", FIXED, "UTC", NULL, "local time follows it"},
    {"SOURCE_DATE_EPOCH", FIXED, "315532800", NULL,
     "time stamps in archives and logs of tools that know it: 1980, zip's first year"},
    {"PYTHONDONTWRITEBYTECODE", FIXED, "1", NULL, "a run leaves nothing in the code's folder"},

    /* ---- threads: the count decides how sums are split ---- */
    {"OMP_NUM_THREADS", THREADS, NULL, NULL, "OpenMP, and what follows it: PyTorch, OpenBLAS built with it"},
    {"MKL_NUM_THREADS", THREADS, NULL, NULL, "MKL"},
    {"OPENBLAS_NUM_THREADS", THREADS, NULL, NULL,
     "OpenBLAS built with its own threads ignores OpenMP's count"},
    {"GOTO_NUM_THREADS", THREADS, NULL, NULL, "OpenBLAS reads its ancestor's name too"},
    {"BLIS_NUM_THREADS", THREADS, NULL, NULL, "BLIS"},
    {"NUMEXPR_NUM_THREADS", THREADS, NULL, NULL, "NumExpr"},
    {"NUMEXPR_MAX_THREADS", THREADS, NULL, NULL, "NumExpr's limit, which it warns about"},
    {"TBB_NUM_THREADS", THREADS, NULL, NULL,
     "programs that hand it to oneTBB; the library itself follows the processors that the process may use"},
    {"VECLIB_MAXIMUM_THREADS", THREADS, NULL, NULL, "Apple's Accelerate"},
    {"NUMBA_NUM_THREADS", THREADS, NULL, NULL, "Numba's parallel loops"},
    {"RAYON_NUM_THREADS", THREADS, NULL, NULL, "Rust's Rayon: tokenizers, Polars' readers"},
    {"POLARS_MAX_THREADS", THREADS, NULL, NULL, "Polars"},
    {"JULIA_NUM_THREADS", THREADS, NULL, NULL, "Julia"},
    {"TF_NUM_INTRAOP_THREADS", THREADS, NULL, NULL, "TensorFlow, inside one operation"},
    {"NPROC", THREADS, NULL, NULL, "XLA on the CPU, and so JAX"},
    {"LOKY_MAX_CPU_COUNT", THREADS, NULL, NULL, "joblib's process pools"},
    {"OMP_DYNAMIC", LIBRARY, "FALSE", "false|0", "OpenMP may use fewer threads than it was given"},
    {"MKL_DYNAMIC", LIBRARY, "FALSE", "false|0",
     "MKL may use fewer threads than it was given; it does by default"},
    {"TF_NUM_INTEROP_THREADS", LIBRARY, "1", "#",
     "operations that do not depend on each other run side by side"},
    {"KMP_DETERMINISTIC_REDUCTION", LIBRARY, "TRUE", "true|1",
     "LLVM's and Intel's OpenMP combine partial sums in the order of arrival; libgomp has no such switch"},
    {"OMP_SCHEDULE", CHOICE, NULL, "static|STATIC",
     "a dynamic schedule hands parts of a sum to whoever is free"},
    {"OMP_NESTED", CHOICE, NULL, "FALSE|false|0", "nested regions multiply the thread count"},
    {"OMP_MAX_ACTIVE_LEVELS", CHOICE, NULL, "1", "nested regions multiply the thread count"},
    {"OMP_PROC_BIND", PASSED, NULL, NULL, "where threads run, not what they compute"},
    {"OMP_PLACES", PASSED, NULL, NULL, "where threads run, not what they compute"},
    {"OMP_WAIT_POLICY", PASSED, NULL, NULL, "how threads wait"},
    {"OMP_STACKSIZE", PASSED, NULL, NULL, "the stack of threads"},
    {"OMP_DISPLAY_ENV", PASSED, NULL, NULL, "messages"},
    {"GOMP_CPU_AFFINITY", PASSED, NULL, NULL, "where threads run, not what they compute"},
    {"GOMP_SPINCOUNT", PASSED, NULL, NULL, "how threads wait"},
    {"KMP_AFFINITY", PASSED, NULL, NULL, "where threads run, not what they compute"},
    {"KMP_BLOCKTIME", PASSED, NULL, NULL, "how threads wait"},
    {"KMP_DUPLICATE_LIB_OK", PASSED, NULL, NULL, "a second OpenMP runtime in one process is tolerated"},

    /* ---- seeds: all of them take 32 bits ---- */
    {"PYTHONHASHSEED", SEED, "python.hash", NULL,
     "the order of sets of strings, and hash(); it must be there before the interpreter starts"},
    {"PL_GLOBAL_SEED", SEED, "lightning", NULL, "Lightning's default seed"},
    {"PL_SEED_WORKERS", FIXED, "1", NULL, "Lightning seeds its workers"},
    {"WDS_SEED", SEED, "webdataset", NULL, "WebDataset's default seed"},

    /* ---- kernels of numerical libraries, CPU ---- */
    {"MKL_CBWR", LIBRARY, mkl_code_path, MKL_PATHS,
     "MKL's code path by processor, alignment and threads; on processors of other makers it may be ignored"},
    {"MKL_VERBOSE", PASSED, NULL, NULL, "messages"},
    {"MKL_THREADING_LAYER", CHOICE, NULL, "GNU|INTEL|SEQUENTIAL", "which threads MKL uses; TBB's steal work"},
    {"MKL_ENABLE_INSTRUCTIONS", CHOICE, NULL,
     "SSE4_2|AVX|AVX2|AVX512|AVX512_E1|AVX512_E2|AVX512_E3|AVX512_E4", "MKL's code path by processor"},
    {"OPENBLAS_CORETYPE", CHOICE, NULL, OPENBLAS_CORES,
     "OpenBLAS' kernels: other core types give other bits; without it the processor decides"},
    {"OPENBLAS_L2_SIZE", CHOICE, NULL, "#", "OpenBLAS' blocks, and so the order of sums"},
    {"OPENBLAS_BLOCK_FACTOR", CHOICE, NULL, "#", "OpenBLAS' blocks, and so the order of sums"},
    {"OPENBLAS_VERBOSE", PASSED, NULL, NULL, "messages"},
    {"BLIS_ARCH_TYPE", CHOICE, NULL, "#|generic|haswell|skx|zen|zen2|zen3|zen4|sandybridge",
     "BLIS' kernels; without it the processor decides"},
    {"ATEN_CPU_CAPABILITY", CHOICE, NULL, "default|avx2|avx512|vsx|zvector",
     "PyTorch's own kernels; necessary and not sufficient to get one processor's bits on another"},
    {"ONEDNN_DEFAULT_FPMATH_MODE", LIBRARY, "STRICT", "strict", "bf16 in float kernels"},
    {"DNNL_DEFAULT_FPMATH_MODE", CHOICE, NULL, "STRICT|strict", "oneDNN's older name for it"},
    {"ONEDNN_MAX_CPU_ISA", CHOICE, NULL, ONEDNN_ISAS, "oneDNN compiles for this instruction set at most"},
    {"DNNL_MAX_CPU_ISA", CHOICE, NULL, ONEDNN_ISAS, "oneDNN's older name for it"},
    {"ONEDNN_VERBOSE", PASSED, NULL, NULL, "messages"},
    {"DNNL_VERBOSE", PASSED, NULL, NULL, "messages"},
    {"GLIBC_TUNABLES", CHOICE, NULL, NULL, "a mask of processor features makes libm choose other kernels"},
    {"NUMBA_CACHE_DIR", NAMED, NULL, NULL, "a folder of the user's"},
    {"NUMBA_CPU_NAME", CHOICE, NULL, "generic", "Numba compiles for it"},

    /* ---- NVIDIA's and others' accelerators ---- */
    {"CUBLAS_WORKSPACE_CONFIG", LIBRARY, ":4096:8", ":16:8",
     "cuBLAS may choose another kernel when streams share a handle; PyTorch accepts these two values only"},
    {"NVIDIA_TF32_OVERRIDE", LIBRARY, "0", NULL, "10-bit mantissas in float products"},
    {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", LIBRARY, "0", NULL, "10-bit mantissas in PyTorch's float products"},
    {"CUDA_DEVICE_ORDER", LIBRARY, "PCI_BUS_ID", NULL, "which card is number 0"},
    {"CUDA_LAUNCH_BLOCKING", CHOICE, NULL, "0|1",
     "kernels one by one: slow, needed for RNNs of CUDA 10.1 only"},
    {"CUDA_VISIBLE_DEVICES", PLACE, NULL, NULL, "which cards are used here"},
    {"NVIDIA_VISIBLE_DEVICES", PLACE, NULL, NULL, "which cards are used here"},
    {"HIP_VISIBLE_DEVICES", PLACE, NULL, NULL, "which cards are used here"},
    {"ROCR_VISIBLE_DEVICES", PLACE, NULL, NULL, "which cards are used here"},
    {"ROCM_PATH", PLACE, NULL, NULL, "where the toolkit lies"},
    {"CUDA_HOME", PLACE, NULL, NULL, "where the toolkit lies"},
    {"CUDA_PATH", PLACE, NULL, NULL, "where the toolkit lies"},
    {"CUDA_CACHE_PATH", NAMED, NULL, NULL, "a folder of the user's"},
    {"CUDA_MODULE_LOADING", PASSED, NULL, NULL, "when kernels are loaded"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", CHOICE, NULL, "1", "the order in which streams reach the card"},
    {"NCCL_ALGO", LIBRARY, "Ring", "Tree", "the order of sums follows size and topology"},
    {"NCCL_PROTO", LIBRARY, "Simple", "LL|LL128", "the order of sums follows size and topology"},
    {"NCCL_NVLS_ENABLE", LIBRARY, "0", NULL, "reductions in the switch differ from call to call"},
    {"NCCL_DEBUG*", PASSED, NULL, NULL, "messages"},
    {"NCCL_SOCKET_IFNAME", NAMED, NULL, NULL, "which network is used here"},
    {"NCCL_IB_*", NAMED, NULL, NULL, "which network is used here"},
    {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", LIBRARY, "0", NULL,
     "atomic additions in Transformer Engine's attention"},
    {"FLASH_ATTENTION_DETERMINISTIC", LIBRARY, "1", NULL, "atomic additions in the gradient of the queries"},
    {"MAMBA_DETERMINISTIC", LIBRARY, "1", NULL, "atomic additions in gradients of state-space layers"},
    {"CAUSAL_CONV1D_DETERMINISTIC", LIBRARY, "1", NULL, "atomic additions in gradients of convolutions"},
    {"HCCL_DETERMINISTIC", LIBRARY, "true", "strict", "Ascend's collective sums"},
    {"ASCEND_LAUNCH_BLOCKING", CHOICE, NULL, "0|1", "kernels one by one"},
    {"HOROVOD_FUSION_THRESHOLD", LIBRARY, "0", NULL, "fused buffers change the order of sums"},
    {"MIOPEN_FIND_MODE", CHOICE, NULL, NULL, "MIOpen chooses kernels by timing them"},

    /* ---- frameworks ---- */
    {"TF_DETERMINISTIC_OPS", LIBRARY, "1", "true", "TensorFlow 1.14 to 2.7; later versions have a function"},
    {"TF_CUDNN_DETERMINISTIC", LIBRARY, "1", "true",
     "TensorFlow 1.14 to 2.7; later versions have a function"},
    {"TF_CUDNN_USE_AUTOTUNE", LIBRARY, "0", NULL, "TensorFlow times kernels and takes the fastest"},
    {"TF_ENABLE_ONEDNN_OPTS", CHOICE, NULL, "0|1", "which CPU kernels TensorFlow uses"},
    {"TF_ENABLE_CUBLAS_TF32", CHOICE, NULL, "0", "10-bit mantissas in float products"},
    {"TF_CPP_*", PASSED, NULL, NULL, "messages"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", PASSED, NULL, NULL, "when memory is taken"},
    {"XLA_FLAGS", LIBRARY, "--xla_gpu_deterministic_ops=true",
     "--xla_gpu_deterministic_ops=true "
     "--xla_gpu_autotune_level=0|--xla_gpu_exclude_nondeterministic_ops=true",
     "scatter's order, and kernels chosen by timing them"},
    {"XLA_PYTHON_CLIENT_*", PASSED, NULL, NULL, "how much memory is taken"},
    {"JAX_PLATFORMS", PASSED, NULL, NULL, "the device that computes"},
    {"JAX_PLATFORM_NAME", PASSED, NULL, NULL, "the device that computes"},
    {"JAX_ENABLE_X64", PASSED, NULL, NULL, "the program's own precision"},
    {"JAX_COMPILATION_CACHE_DIR", NAMED, NULL, NULL, "a folder of the user's"},
    {"TORCHINDUCTOR_MAX_AUTOTUNE", CHOICE, NULL, "0", "Inductor times kernels and takes the fastest"},
    {"TORCHINDUCTOR_MAX_AUTOTUNE_GEMM", CHOICE, NULL, "0", "Inductor times kernels and takes the fastest"},
    {"TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE", CHOICE, NULL, "0",
     "Inductor times kernels and takes the fastest"},
    {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING", CHOICE, NULL, "0",
     "Inductor times kernels and takes the fastest"},
    {"TORCHINDUCTOR_FX_GRAPH_CACHE", CHOICE, NULL, "0|1", "compiled graphs are kept"},
    {"TORCHINDUCTOR_CACHE_DIR", NAMED, NULL, NULL, "a folder of the user's"},
    {"TORCH_HOME", NAMED, NULL, NULL, "a folder of the user's"},
    {"TORCH_EXTENSIONS_DIR", NAMED, NULL, NULL, "a folder of the user's"},
    {"TORCH_CUDA_ARCH_LIST", PASSED, NULL, NULL, "what extensions are compiled for"},
    {"TORCH_LOGS", PASSED, NULL, NULL, "messages"},
    {"TORCH_SHOW_CPP_STACKTRACES", PASSED, NULL, NULL, "messages"},
    {"TORCH_CPP_LOG_LEVEL", PASSED, NULL, NULL, "messages"},
    {"TORCH_DISTRIBUTED_DEBUG", PASSED, NULL, NULL, "messages"},
    {"TORCH_NCCL_*", PASSED, NULL, NULL, "time limits"},
    {"PYTORCH_CUDA_ALLOC_CONF", PASSED, NULL, NULL, "where memory lies on the card"},
    {"PYTORCH_ALLOC_CONF", PASSED, NULL, NULL, "where memory lies on the card"},
    {"HF_HOME", NAMED, NULL, NULL, "a folder of the user's"},
    {"HF_HUB_CACHE", NAMED, NULL, NULL, "a folder of the user's"},
    {"HF_DATASETS_CACHE", NAMED, NULL, NULL, "a folder of the user's"},
    {"HF_HUB_OFFLINE", PASSED, NULL, NULL, "whether anything is downloaded"},
    {"HF_DATASETS_OFFLINE", PASSED, NULL, NULL, "whether anything is downloaded"},
    {"TRANSFORMERS_OFFLINE", PASSED, NULL, NULL, "whether anything is downloaded"},
    {"TOKENIZERS_PARALLELISM", PASSED, NULL, NULL, "threads over texts that do not depend on each other"},
    {"MPLBACKEND", PASSED, NULL, NULL, "what figures are drawn with"},

    /* ---- Python and the loader ---- */
    {"PYTHONPATH", PLACE, NULL, NULL, "where modules are looked for; the shim's folder stands in front"},
    {"PYTHONHOME", PLACE, NULL, NULL, "where Python's own library lies"},
    {"PYTHONOPTIMIZE", PASSED, NULL, NULL, "whether assertions run"},
    {"PYTHONNOUSERSITE", PASSED, NULL, NULL, "whether packages of the user's own folder are seen"},
    {"PYTHONSAFEPATH", PASSED, NULL, NULL, "whether the script's folder is on the path"},
    {"PYTHONUTF8", PASSED, NULL, NULL, "how text files are read"},
    {"PYTHONIOENCODING", PASSED, NULL, NULL, "how text is printed"},
    {"PYTHONUNBUFFERED", PASSED, NULL, NULL, "when output appears"},
    {"PYTHONFAULTHANDLER", PASSED, NULL, NULL, "messages"},
    {"PYTHONWARNINGS", PASSED, NULL, NULL, "messages"},
    {"PYTHONDEVMODE", PASSED, NULL, NULL, "checks, and messages"},
    {"PYTHONMALLOC", PASSED, NULL, NULL, "which allocator Python uses"},
    {"LD_PRELOAD", PLACE, NULL, NULL, "libraries in front of all others; the interposer stands before them"},
    {"LD_LIBRARY_PATH", PLACE, NULL, NULL, "where libraries are looked for"},
    {"LD_BIND_NOW", PASSED, NULL, NULL, "when functions are looked up"},
    {"LD_AUDIT", CHOICE, NULL, NULL, "a library that may replace any function"},
    {"MALLOC_*", PASSED, NULL, NULL, "where memory lies, and what it holds when it is new"},
    {"PATH", PLACE, NULL, NULL, "where programs are looked for"},

    /* ---- jobs and users ---- */
    {"RANK", PLACE, NULL, NULL, "this process among the others of a job"},
    {"WORLD_SIZE", PLACE, NULL, NULL, "how many there are"},
    {"LOCAL_RANK", PLACE, NULL, NULL, "this process among those of this machine"},
    {"LOCAL_WORLD_SIZE", PLACE, NULL, NULL, "how many there are"},
    {"MASTER_ADDR", NAMED, NULL, NULL, "where the job's first process listens"},
    {"MASTER_PORT", NAMED, NULL, NULL, "where the job's first process listens"},
    {"SLURM_*", NAMED, NULL, NULL, "the job"},
    {"OMPI_*", NAMED, NULL, NULL, "the job"},
    {"PMI_*", NAMED, NULL, NULL, "the job"},
    {"PMIX_*", NAMED, NULL, NULL, "the job"},
    {"HOME", NAMED, NULL, NULL, "who"},
    {"USER", NAMED, NULL, NULL, "who"},
    {"LOGNAME", NAMED, NULL, NULL, "who"},
    {"SHELL", NAMED, NULL, NULL, "who"},
    {"TMPDIR", NAMED, NULL, NULL, "where temporary files go"},
    {"VIRTUAL_ENV", NAMED, NULL, NULL, "where the user's packages lie"},
    {"CONDA_PREFIX", NAMED, NULL, NULL, "where the user's packages lie"},
    {"XDG_CACHE_HOME", NAMED, NULL, NULL, "a folder of the user's"},
    {"SSL_CERT_FILE", NAMED, NULL, NULL, "whom downloads trust"},
    {"SSL_CERT_DIR", NAMED, NULL, NULL, "whom downloads trust"},
    {"CURL_CA_BUNDLE", NAMED, NULL, NULL, "whom downloads trust"},
    {"REQUESTS_CA_BUNDLE", NAMED, NULL, NULL, "whom downloads trust"},
    {"http_proxy", NAMED, NULL, NULL, "how the network is reached; may hold a password"},
    {"https_proxy", NAMED, NULL, NULL, "how the network is reached; may hold a password"},
    {"no_proxy", NAMED, NULL, NULL, "how the network is reached"},
    {"HTTP_PROXY", NAMED, NULL, NULL, "how the network is reached; may hold a password"},
    {"HTTPS_PROXY", NAMED, NULL, NULL, "how the network is reached; may hold a password"},
    {"NO_PROXY", NAMED, NULL, NULL, "how the network is reached"},
    {"TRAINCTL_PLUGIN_PATH", PLACE, NULL, NULL, "where plugins are looked for"},
    {"TRAINCTL_SIMD", PLACE, NULL, NULL, "the native engine's kernels: all give the same bits"},
    {"ASAN_OPTIONS", PLACE, NULL, NULL, "a sanitizer's checks"},
    {"LSAN_OPTIONS", PLACE, NULL, NULL, "a sanitizer's checks"},
    {"TSAN_OPTIONS", PLACE, NULL, NULL, "a sanitizer's checks"},
    {"UBSAN_OPTIONS", PLACE, NULL, NULL, "a sanitizer's checks"},

    /* ---- the rest of the families that are known to change results ---- */
    {"PYTORCH_BUILD_NUMBER", DROPPED, NULL, NULL, "container images say with it what they hold"},
    {"*_VERSION", DROPPED, NULL, NULL, "container images say with it what they hold"},
    {"ASCEND_*", FAMILY, NULL, NULL, "Ascend"},
    {"ATEN_*", FAMILY, NULL, NULL, "PyTorch's own kernels"},
    {"BLIS_*", FAMILY, NULL, NULL, "BLIS"},
    {"CAUSAL_CONV1D_*", FAMILY, NULL, NULL, "causal-conv1d"},
    {"CUBLAS*", FAMILY, NULL, NULL, "cuBLAS, also emulated products of lower precision"},
    {"CUDNN_*", FAMILY, NULL, NULL, "cuDNN"},
    {"CUSOLVER*", FAMILY, NULL, NULL, "cuSOLVER, also emulated products of lower precision"},
    {"DNNL_*", FAMILY, NULL, NULL, "oneDNN"},
    {"FLASH_ATTENTION_*", FAMILY, NULL, NULL, "flash attention"},
    {"GOMP_*", FAMILY, NULL, NULL, "GNU's OpenMP"},
    {"GOTO_*", FAMILY, NULL, NULL, "OpenBLAS"},
    {"HCCL_*", FAMILY, NULL, NULL, "Ascend's collectives"},
    {"HOROVOD_*", FAMILY, NULL, NULL, "Horovod"},
    {"JAX_*", FAMILY, NULL, NULL, "JAX"},
    {"KMP_*", FAMILY, NULL, NULL, "LLVM's and Intel's OpenMP"},
    {"MAMBA_*", FAMILY, NULL, NULL, "Mamba"},
    {"MIOPEN_*", FAMILY, NULL, NULL, "MIOpen"},
    {"MKL_*", FAMILY, NULL, NULL, "MKL"},
    {"NCCL_*", FAMILY, NULL, NULL, "NCCL"},
    {"NUMBA_*", FAMILY, NULL, NULL, "Numba"},
    {"NUMEXPR_*", FAMILY, NULL, NULL, "NumExpr"},
    {"NVTE_*", FAMILY, NULL, NULL, "Transformer Engine"},
    {"OMP_*", FAMILY, NULL, NULL, "OpenMP"},
    {"ONEDNN_*", FAMILY, NULL, NULL, "oneDNN"},
    {"OPENBLAS_*", FAMILY, NULL, NULL, "OpenBLAS"},
    {"PYTORCH_*", FAMILY, NULL, NULL, "PyTorch"},
    {"ROCBLAS_*", FAMILY, NULL, NULL, "rocBLAS"},
    {"TBB_*", FAMILY, NULL, NULL, "oneTBB"},
    {"TF_AUTOTUNE_*", FAMILY, NULL, NULL, "TensorFlow; not all of TF_*, which Terraform uses too"},
    {"TF_CUDA_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_CUDNN_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_DISABLE_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_ENABLE_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_GPU_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_MKL_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_ONEDNN_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_USE_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TF_XLA_*", FAMILY, NULL, NULL, "TensorFlow"},
    {"TORCHINDUCTOR_*", FAMILY, NULL, NULL, "PyTorch's compiler"},
    {"TORCH_*", FAMILY, NULL, NULL, "PyTorch"},
    {"XLA_*", FAMILY, NULL, NULL, "XLA"},
};

const tctl_variable *tctl_variables(size_t *ret_n)
{
    *ret_n = sizeof table / sizeof table[0];
    return table;
}

static bool matches(const char *pattern, const char *name, size_t length)
{
    size_t n = strlen(pattern);
    if (pattern[0] == '*')
        return length >= n - 1 && memcmp(name + length - (n - 1), pattern + 1, n - 1) == 0;
    if (pattern[n - 1] == '*')
        return length >= n - 1 && memcmp(pattern, name, n - 1) == 0;
    return n == length && memcmp(pattern, name, n) == 0;
}

const tctl_variable *tctl_variable_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (matches(table[i].name, name, length))
            return &table[i];
    }
    return NULL;
}

const char *tctl_variable_value(const tctl_variable *v)
{
    if (v->value == mkl_code_path) {
#if defined __x86_64__
        return __builtin_cpu_supports("avx2") ? "AVX2,STRICT" : "COMPATIBLE";
#else
        return "COMPATIBLE";
#endif
    }
    return v->kind == FIXED || v->kind == LIBRARY ? v->value : NULL;
}

static bool word_allows(const char *word, size_t length, const char *value)
{
    if (length == 1 && *word == '*')
        return true;
    if (length == 1 && *word == '#')
        return *value != '\0' && strspn(value, "0123456789") == strlen(value);
    return strlen(value) == length && memcmp(word, value, length) == 0;
}

bool tctl_variable_allows(const tctl_variable *v, const char *value)
{
    const char *own = tctl_variable_value(v);
    if (own != NULL && strcmp(own, value) == 0)
        return true;
    for (const char *word = v->allowed; word != NULL;) {
        size_t length = strcspn(word, "|");
        if (word_allows(word, length, value))
            return true;
        word = word[length] == '|' ? word + length + 1 : NULL;
    }
    return false;
}
