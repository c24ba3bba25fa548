#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"

#define PARALLEL_ELEMENTS 65536
#define PIECE 512

struct task {
    char *dst;
    size_t n;
    uint8_t dtype;
    /* Start and step, both rounded to the dtype; integers by their two's complement. */
    double start, step;
    uint64_t start_int, step_int;
};

/* Element i is start + i * step in the dtype's arithmetic; half types in float32, rounded once. */
static void float_range(const struct task *t, size_t begin, size_t end)
{
    enum dtype type = (enum dtype)t->dtype;
    float wide[PIECE];

    for (size_t i = begin, n; i < end; i += n) {
        n = MIN(PIECE, end - i);
        for (size_t j = 0; j < n; j++)
            wide[j] = (float)t->start + (float)(i + j) * (float)t->step;
        cpu_convert((struct cpu_vec){ t->dst + i * dt_size(type), type },
                    (struct cpu_vec){ wide, DT_FLOAT32 }, n);
    }
}

static void double_range(const struct task *t, size_t begin, size_t end)
{
    double *dst = (double *)t->dst;

    for (size_t i = begin; i < end; i++)
        dst[i] = t->start + (double)i * t->step;
}

static void int_range(const struct task *t, size_t begin, size_t end)
{
    enum dtype type = (enum dtype)t->dtype;
    uint64_t wide[PIECE];

    for (size_t i = begin, n; i < end; i += n) {
        n = MIN(PIECE, end - i);
        for (size_t j = 0; j < n; j++)
            wide[j] = t->start_int + (i + j) * t->step_int;
        cpu_convert((struct cpu_vec){ t->dst + i * dt_size(type), type },
                    (struct cpu_vec){ wide, DT_UINT64 }, n);
    }
}

static void run_range(void *arg, size_t begin, size_t end)
{
    const struct task *t = arg;

    if (!dt_is_inexact((enum dtype)t->dtype))
        int_range(t, begin, end);
    else if (t->dtype == DT_FLOAT64)
        double_range(t, begin, end);
    else
        float_range(t, begin, end);
}

static enum err run_task(void *payload)
{
    struct task *t = payload;

    cpu_parallel_for(t->n, PARALLEL_ELEMENTS, run_range, t);
    return ERR_OK;
}

/* v rounded to the dtype. */
static double rounded(double v, enum dtype t)
{
    uint64_t stored = 0;
    double back = 0;

    cpu_convert((struct cpu_vec){ &stored, t }, (struct cpu_vec){ &v, DT_FLOAT64 }, 1);
    cpu_convert((struct cpu_vec){ &back, DT_FLOAT64 }, (struct cpu_vec){ &stored, t }, 1);
    return back;
}

enum err cpu_arange(const struct exec *x)
{
    const struct arange_params *p = x->node->params;
    struct arr *out = x->out[0];
    enum dtype type = (enum dtype)out->dtype;
    struct task t = { .n = out->size, .dtype = out->dtype };
    enum err err;

    TRY(arr_alloc(out, &be_cpu));
    t.dst = cpu_dst(out);
    if (dt_is_inexact(type)) {
        t.start = rounded(p->start, type);
        t.step = rounded(rounded(p->start + p->step, type) - t.start, type);
    } else {
        t.start_int = dt_f64_to_int(p->start, type);
        t.step_int = dt_f64_to_int(p->start + p->step, type) - t.start_int;
    }
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
