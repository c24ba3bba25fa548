/* The table of the CPU backend, and what it says about the processor. */
#include "backend/common/families.h"
#include "backend/cpu/cpu.h"

#include <pthread.h>
#include <sys/utsname.h>

static char device_name[256], architecture[sizeof((struct utsname *)0)->machine];

/* The processor's brand name where the kernel tells, else nothing. */
static void read_brand(void)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];

    if (!f)
        return;
    while (!device_name[0] && fgets(line, sizeof line, f)) {
        const char *colon = strncmp(line, "model name", 10) == 0 ? strstr(line, ": ") : NULL;
        if (colon)
            snprintf(device_name, sizeof device_name, "%.*s", (int)strcspn(colon + 2, "\n"),
                     colon + 2);
    }
    fclose(f);
}

static void read_processor(void)
{
    struct utsname u;

    snprintf(architecture, sizeof architecture, "%s", uname(&u) == 0 ? u.machine : "unknown");
    read_brand();
    if (!device_name[0])
        snprintf(device_name, sizeof device_name, "%s", architecture);
}

static enum err cpu_open(void)
{
    return ERR_OK;
}

static int cpu_device_count(void)
{
    return 1;
}

static bool cpu_is_hardware(void)
{
    return true;
}

static bool cpu_is_unified(void)
{
    return true;
}

static enum err cpu_device_info(const struct be_info_row **rows, size_t *n, int index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const struct be_info_row table[] = {
        { .key = "device_name", .text = device_name },
        { .key = "architecture", .text = architecture },
    };

    pthread_once(&once, read_processor);
    *rows = table;
    *n = index == 0 ? ARRAY_LEN(table) : 0;
    return ERR_OK;
}

static void cpu_describe(FILE *out)
{
    const struct be_info_row *rows;
    size_t n;

    if (cpu_device_info(&rows, &n, 0) != ERR_OK)
        return;
    fprintf(out, "device        %s (%s)\n", device_name, architecture);
    fprintf(out, "threads       %d\n", cpu_threads());
    fprintf(out, "memory        %zu MiB\n", cpu_memory_size() >> 20);
}

static const be_op_fn cpu_families[OP_FAMILY_COUNT] = {
#define COMMON(id, word) [OP_FAMILY_##id] = be_##word,
#define OWN(id, word) [OP_FAMILY_##id] = cpu_##word,
#define CPU_ONLY(id, word) [OP_FAMILY_##id] = cpu_##word,
#include "ops/families.def"
};

const struct be be_cpu = {
    .name = "cpu",
    .type = DEV_CPU,
    .open = cpu_open,
    .device_count = cpu_device_count,
    .is_hardware = cpu_is_hardware,
    .device_info = cpu_device_info,
    .buf_alloc = cpu_buf_alloc,
    .buf_free = cpu_buf_free,
    .is_unified = cpu_is_unified,
    .cache_clear = cpu_cache_clear,
    .memory_size = cpu_memory_size,
    .strm_open = cpu_strm_open,
    .strm_close = cpu_strm_close,
    .elementwise = cpu_elementwise,
    .families = cpu_families,
    .copy = cpu_copy,
    .hold = cpu_hold,
    .step_end = cpu_step_end,
    .flush = cpu_flush,
    .retire = cpu_retire,
    .sync = cpu_sync,
    .ev_record = cpu_ev_record,
    .ev_wait = cpu_ev_wait,
    .ev_query = cpu_ev_query,
    .strm_wait = cpu_strm_wait,
    .ev_notify = cpu_ev_notify,
    .quiesce = cpu_quiesce,
    .before_fork = cpu_before_fork,
    .describe = cpu_describe,
};
