/* `mlx bench`: cases, and how one is measured. Graphs are built through the public API only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "mlx/c/mlx.h"

#define BENCH_MAX_INPUTS 4

struct bench_case;

/* One case set up for a size: inputs on the device, reused by every repetition. */
struct bench_state {
    const struct bench_case *c;
    mlx_stream stream;
    mlx_array in[BENCH_MAX_INPUTS];
    size_t bytes; /* of one large operand */
};

struct bench_case {
    const char *name, *what;
    /* Fills s->in. Returns 0 if fine. */
    int (*setup)(struct bench_state *s);
    /* Builds one result; evaluated by the caller. */
    int (*build)(mlx_array *out, const struct bench_state *s);
    double (*work)(const struct bench_state *s); /* bytes or operations of one result */
    const char *unit;                            /* of work / second / scale */
    double scale;
    double target; /* on the H200, in unit; 0 = none */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_case_count;

struct bench_options {
    const char *filter; /* part of a name, or NULL */
    int megabytes;      /* size of the large operands; 0 = by device */
    int edge;           /* side of the square matrices; 0 = by device */
    double seconds;     /* time per case */
    bool json;
    int one_shot; /* elements: set up, add once, end; 0 = the whole bench */
    mlx_device_type device;
    const char *program; /* to run itself again */
};
extern struct bench_options bench_options;

/* Result of a measurement: medians. */
struct bench_result {
    double wall;   /* seconds per result */
    double gpu;    /* seconds per result by the GPU's own clock; 0 where there is none */
    double spread; /* (90th - 10th percentile) / median of wall */
    double best;   /* shortest wall: what a machine with other work to do can compare */
    double warm;   /* seconds of warm-up */
    double clock;  /* the GPU's right after it, part of the highest it had; 0: not known */
    int runs;
};

/* What is repeated: run does it once, until it is complete, and says how many seconds of it count.
 * Returns 0 if fine. */
struct bench_work {
    int (*run)(double *seconds, void *data);
    void *data;
};

/* Seconds on the monotonic clock. */
double bench_now(void);
double bench_median(double *v, int n); /* sorts v */
/* Total nanoseconds that the GPU was busy, by timestamps; needs the timing setting. */
double bench_gpu_seconds(void);

/* A random array, evaluated. Returns 0 if fine. */
int bench_fill(mlx_array *out, const int *shape, size_t n, mlx_dtype dtype, mlx_stream s);

/* Warm-up and medians over repetitions of work whose data is there, or of a case that is set up.
 * Nothing may come between making the data and this. Returns 0 if fine. */
int bench_measure_work(struct bench_result *r, const struct bench_work *w);
int bench_measure(struct bench_result *r, struct bench_state *s);
/* The warm-up alone: the work until its time is steady, then a load until the GPU's clock is up,
 * then the work again. Measuring follows at once. Returns 0 if fine. */
int bench_warm(const struct bench_work *w);
/* Members of a JSON object that say how steady it was, without a comma around them. */
void bench_put_steadiness(const struct bench_result *r);

/* The load that raises the clock of a hardware GPU; for other devices none is opened. raise runs it
 * until the clock is up, or for a second if it does not rise. Return 0 if fine. */
int bench_load_open(mlx_device_type type);
void bench_load_close(void);
bool bench_load_is_open(void);
int bench_load_raise(void);
/* The clock now, by one run of the load: part of the highest that it has seen; 0: none is open. */
double bench_load_clock(void);

/* The target where the device is one that it is for; 0: none. */
double bench_target(double target);

/* True if the filter lets this case or table run. */
bool bench_wants(const char *name);

/* One line: name, what, microseconds and the most they may be (0 = no target); r: how they were
 * measured, or NULL. */
void bench_report(const char *name, const char *what, double us, double target,
                  const struct bench_result *r);

/* `"key": "text", ` of a JSON object. */
void bench_put_text(const char *key, const char *text);
/* Opens the first object of JSON output with what the numbers of the lines that follow belong to:
 * version, device and driver, and a comma. The caller goes on and closes it. */
void bench_begin_json(mlx_device device);

/* Tables of their own. began is when the command started, before any device was opened. */
int bench_startup(mlx_stream s, double began);
int bench_latency(mlx_stream s);
/* Matrix products of many shapes, only if the filter asks for "products". */
int bench_products(mlx_stream s);
/* `mlx bench llm`. */
int bench_llm(int argc, char **argv);
/* Products with quantized matrices, only if the filter asks for "quantized". */
int bench_quantized(mlx_stream s);
/* True if the filter asks for one of its shapes by name. */
bool bench_wants_quantized(void);
/* Norms, rotary positions, attention. */
int bench_fast(mlx_stream s);
bool bench_wants_fast(void);
/* Gradients of norms and attention, steps of training. */
int bench_training(mlx_stream s);
bool bench_wants_training(void);
/* Upload, add, read-back of n elements once. */
int bench_add_once(int n, mlx_stream s);
