/* What happens when the driver fails: a clear text, the right code, nobody hangs, the process and
 * the CPU go on. Every case runs in a process of its own, because a lost device stays lost. */
#include "eval/wait.h"
#include "support/child.h"
#include "support/testing.h"
#include "support/vk.h"

#include <pthread.h>

#include "backend/cpu/cpu.h"
#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/kern.h"
#include "eval/eval.h"
#include "eval/sched.h"
#include "graph/memory.h"
#include "ops/ops.h"

static void encode(struct strm *s, struct arr *out)
{
    vkt_encode(s, &(struct vkt_probe){ .out = out, .mul = 1 });
}

static void assert_gpu_is_gone(struct strm *s)
{
    struct vk_enc *e;

    assert_fails(ERR_DEVICE, vk_enc_get(&e, s));
    assert_non_null(strstr(err_text(), "lost"));
    assert_fails(ERR_DEVICE, vk_enc_get(&e, s)); /* sticky */
}

static void assert_cpu_works(void)
{
    struct arr *a = NULL;
    const void *host;

    assert_ok(arr_new_number(&a, 42, DT_INT32));
    assert_ok(arr_host(&host, a));
    assert_int_equal(*(const int32_t *)host, 42);
    arr_unref(&a);
}

static void lost_at_submit(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 1000);
    size_t active = memory_active();

    encode(s, a);
    assert_ok(s->be->hold(s, &a->buf, 1));
    vk_fault_set(VK_FAULT_LOST, 1);
    assert_fails(ERR_DEVICE, strm_synchronize(s));
    assert_non_null(strstr(err_text(), "lost"));
    assert_int_equal(buf_refs(a->buf), 1); /* the command let go of it */
    assert_gpu_is_gone(s);
    arr_unref(&a);
    assert_true(memory_active() < active);
    assert_cpu_works();
}

/* Work that was in flight before the loss is given up, too, with its tasks and references. */
static void lost_with_work_in_flight(void)
{
    struct strm *s = vkt_stream(), *other = vkt_stream();
    struct arr *a = vkt_array(s, 1 << 20), *b = vkt_array(other, 1000);
    struct ev *e = NULL;

    encode(other, b);
    assert_ok(ev_new(&e, other));
    assert_ok(ev_record(e));
    assert_ok(other->be->flush(other));
    encode(s, a);
    vk_fault_set(VK_FAULT_LOST, 1);
    assert_ok(s->be->flush(s)); /* the failure waits in the stream */
    enum err err = ev_wait(e);  /* complete before the loss, or given up: both are answers */
    assert_true(err == ERR_OK || err == ERR_DEVICE);
    assert_fails(ERR_DEVICE, strm_synchronize(s));
    assert_gpu_is_gone(other);
    assert_int_equal(sched_active(), 0);
    ev_unref(&e);
    arr_unref(&a);
    arr_unref(&b);
    assert_cpu_works();
}

struct waiter {
    struct ev *ev;
    enum err err;
};

static void *wait_in_thread(void *arg)
{
    struct waiter *w = arg;

    w->err = ev_wait(w->ev);
    return NULL;
}

/* A thread that waits for an event when the device goes away is let go with the error. */
static void lost_under_a_waiter(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 1000);
    struct waiter w = { .err = ERR_OK };
    pthread_t thread;

    encode(s, a);
    assert_ok(ev_new(&w.ev, s));
    assert_ok(ev_record(w.ev));
    assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &w), 0);
    vk_fault_set(VK_FAULT_LOST, 1);
    assert_ok(s->be->flush(s));
    pthread_join(thread, NULL);
    assert_int_equal(w.err, ERR_DEVICE);
    ev_unref(&w.ev);
    arr_unref(&a);
}

/* Copies fail on a lost device; memory that the host can read stays readable. */
static void lost_before_read_back(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 1000);
    const void *host = NULL;

    encode(s, a);
    assert_ok(strm_synchronize(s));
    struct arr *b = vkt_array(s, 10);
    encode(s, b);
    vk_fault_set(VK_FAULT_LOST, 1);
    assert_fails(ERR_DEVICE, strm_synchronize(s));
    if (be_vulkan.is_unified()) {
        assert_ok(buf_host(&host, a->buf));
        assert_int_equal(((const uint32_t *)host)[999], 999);
    } else {
        assert_fails(ERR_DEVICE, buf_host(&host, a->buf));
    }
    arr_unref(&a);
    arr_unref(&b);
}

/* ---- a submission fails, the device goes on ---- */

static struct ev *record(struct strm *s)
{
    struct ev *e = NULL;

    assert_ok(ev_new(&e, s));
    assert_ok(ev_record(e));
    return e;
}

static void encode_and_fail(struct strm *s, struct arr *a)
{
    encode(s, a);
    vk_fault_set(VK_FAULT_SUBMIT, 1);
    assert_ok(s->be->flush(s)); /* the failure waits in the stream */
}

static void assert_works(struct strm *s)
{
    struct arr *a = vkt_array(s, 1000);

    encode(s, a);
    assert_int_equal(vkt_read(s, a)[999], 999);
    arr_unref(&a);
}

/* Everybody who waits for the event is told; what came before it is fine; the stream goes on. */
static void failed_submission(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 1000);
    struct waiter w = { .err = ERR_OK };
    struct vk_enc *enc;
    pthread_t thread;
    bool done = false;

    encode(s, a);
    struct ev *before = record(s);
    assert_ok(s->be->flush(s));
    encode(s, a);
    w.ev = record(s);
    vk_fault_set(VK_FAULT_SUBMIT, 1);
    assert_ok(s->be->flush(s));
    struct ev *after = record(s); /* no work since, and nobody was told yet */
    assert_ok(ev_wait(before));
    assert_fails(ERR_NO_MEMORY, ev_query(&done, w.ev));
    assert_non_null(strstr(err_text(), "vkQueueSubmit"));
    assert_fails(ERR_NO_MEMORY, ev_wait(w.ev));
    assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &w), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.err, ERR_NO_MEMORY);
    assert_fails(ERR_NO_MEMORY, ev_wait(after));
    assert_works(s);
    encode_and_fail(s, a); /* with nobody waiting, the next use is told, once */
    assert_fails(ERR_NO_MEMORY, vk_enc_get(&enc, s));
    assert_works(s);
    encode_and_fail(s, a);
    assert_fails(ERR_NO_MEMORY, strm_synchronize(s));
    assert_works(s);
    ev_unref(&before);
    ev_unref(&w.ev);
    ev_unref(&after);
    arr_unref(&a);
}

/* From stream to stream, GPU and CPU, each of which only waits for the one before. */
static void failure_travels(void)
{
    struct strm *s[3] = { vkt_stream(), vkt_stream(), NULL }, *bystander = vkt_stream();
    struct arr *a = vkt_array(s[0], 1000), *b = vkt_array(s[1], 1000);
    struct ev *e[3];

    assert_ok(strm_new(&s[2], (struct dev){ DEV_CPU, 0 }));
    encode_and_fail(s[0], a);
    e[0] = record(s[0]);
    assert_ok(ev_wait_on(s[1], e[0]));
    vkt_encode(s[1], &(struct vkt_probe){ .in = a, .out = b, .mul = 1 });
    e[1] = record(s[1]);
    assert_ok(s[1]->be->flush(s[1]));
    assert_ok(ev_wait_on(s[2], e[1]));
    e[2] = record(s[2]);
    assert_ok(ev_wait_on(bystander, e[2]));
    assert_fails(ERR_NO_MEMORY, strm_synchronize(bystander));
    for (int i = 2; i >= 0; i--) {
        assert_fails(ERR_NO_MEMORY, ev_wait(e[i]));
        assert_non_null(strstr(err_text(), "vkQueueSubmit"));
        assert_ok(strm_synchronize(s[i])); /* told */
        /* What is over is still poisoned. */
        assert_ok(ev_wait_on(bystander, e[i]));
        assert_fails(ERR_NO_MEMORY, strm_synchronize(bystander));
        ev_unref(&e[i]);
    }
    assert_works(s[0]);
    assert_works(s[1]);
    assert_works(bystander);
    arr_unref(&a);
    arr_unref(&b);
}

static void failure_travels_by_semaphores(void)
{
    vk_fault_set(VK_FAULT_TIMELINE, -1);
    failure_travels();
}

/* Arrays: readers of what depends on the failed work see it, on whichever device. */
static void failure_reaches_arrays(void)
{
    struct strm *s[2] = { vkt_stream(), vkt_stream() }, *cpu = NULL;
    struct arr *one = NULL, *x = NULL, *y = NULL, *z = NULL, *free = NULL;
    const void *host;

    assert_ok(strm_new(&cpu, (struct dev){ DEV_CPU, 0 }));
    assert_ok(arr_new_number(&one, 1, DT_FLOAT32));
    assert_ok(ops_binary(&free, OP_ADD, one, one, s[1]));
    assert_ok(eval_arrays(&free, 1, true));
    assert_ok(ops_binary(&x, OP_ADD, one, one, s[0]));
    vk_fault_set(VK_FAULT_SUBMIT, 1);
    assert_ok(eval_arrays(&x, 1, true));
    assert_ok(ops_binary(&y, OP_ADD, x, one, s[1]));
    assert_ok(ops_binary(&z, OP_ADD, x, one, cpu));
    assert_ok(eval_arrays(&y, 1, true));
    assert_ok(eval_arrays(&z, 1, true));
    assert_fails(ERR_NO_MEMORY, arr_host(&host, y));
    assert_fails(ERR_NO_MEMORY, arr_host(&host, z));
    assert_fails(ERR_NO_MEMORY, arr_host(&host, x));
    assert_ok(arr_host(&host, free));
    assert_true(*(const float *)host == 2);
    arr_unref(&one);
    arr_unref(&x);
    arr_unref(&y);
    arr_unref(&z);
    arr_unref(&free);
    assert_works(s[0]);
    assert_works(s[1]);
}

static enum err fail_task(void *payload)
{
    (void)payload;
    return err_set(ERR_RUNTIME, "[test] the task failed");
}

/* The other way: what the CPU did not make is not given to the GPU. */
static void cpu_failure_reaches_gpu(void)
{
    struct strm *cpu = NULL, *s = vkt_stream(), *next = vkt_stream();
    struct arr *a = vkt_array(s, 1000);

    assert_ok(strm_new(&cpu, (struct dev){ DEV_CPU, 0 }));
    assert_ok(cpu_enqueue(cpu, fail_task, NULL, 0));
    struct ev *e = record(cpu);
    assert_ok(ev_wait_on(s, e));
    encode(s, a);
    struct ev *on_gpu = record(s);
    assert_ok(s->be->flush(s));
    assert_ok(ev_wait_on(next, on_gpu));
    assert_fails(ERR_RUNTIME, strm_synchronize(next));
    assert_string_equal(err_text(), "[test] the task failed");
    assert_fails(ERR_RUNTIME, ev_wait(on_gpu));
    assert_fails(ERR_RUNTIME, strm_synchronize(cpu));
    assert_works(s);
    ev_unref(&e);
    ev_unref(&on_gpu);
    arr_unref(&a);
}

static void out_of_device_memory(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 1000);
    struct vk_enc *e;
    uint64_t addr;

    assert_ok(vk_enc_get(&e, s));
    vk_fault_set(VK_FAULT_MEMORY, -1);
    assert_fails(ERR_NO_MEMORY, vk_enc_scratch(e, &addr, (size_t)100 << 20));
    vk_fault_set(VK_FAULT_MEMORY, 0);
    encode(s, a); /* nothing is broken */
    assert_int_equal(vkt_read(s, a)[999], 999);
    arr_unref(&a);
    assert_cpu_works();
}

static void failed_pipeline(void)
{
    const uint32_t spec[3] = { 128, 1, 1 };
    struct strm *s = vkt_stream();
    const struct vk_pipe *pipe;
    struct arr *a = vkt_array(s, 1000);

    vk_fault_set(VK_FAULT_PIPELINE, -1);
    assert_fails(ERR_DEVICE, kern_pipe(&pipe, KERN_PROBE, -1, spec, 3));
    vk_fault_set(VK_FAULT_PIPELINE, 0);
    encode(s, a);
    assert_int_equal(vkt_read(s, a)[999], 999);
    arr_unref(&a);
}

/* The n-th host allocation fails, for every n that the path has. */
static enum err try_path(struct strm *s, struct arr *out, size_t fail_at)
{
    const uint32_t spec[3] = { 64, 1, 1 };
    struct probe_args args = { .n = (uint32_t)out->size, .mul = 1 };
    const struct vk_pipe *pipe;
    struct vk_enc *e = NULL;
    struct ev *ev = NULL;
    uint64_t scratch;
    enum err err;

    mem_fail_after(fail_at);
    TRY(kern_pipe(&pipe, KERN_PROBE, -1, spec, 3));
    TRY(vk_enc_get(&e, s));
    TRY(vk_enc_scratch(e, &scratch, 1000));
    TRY(vk_enc_args(e, &args.in_addr, &args, sizeof args));
    args.in_addr = 0;
    TRY(vk_enc_write(e, &args.out_addr, out));
    TRY(vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &args, sizeof args,
                        (struct vk_grid){ 16, 1, 1 }));
    TRY(s->be->hold(s, &out->buf, 1));
    TRY(ev_new(&ev, s));
    TRY(ev_record(ev));
    TRY(s->be->flush(s));
    TRY(ev_wait(ev));
out:
    mem_fail_after(0);
    ev_unref(&ev);
    return err;
}

static void no_host_memory(void)
{
    enum err err = ERR_NO_MEMORY;
    int failures = 0;

    for (size_t n = 1; n < 200 && err; n++) {
        struct strm *s = vkt_stream(); /* fresh: everything must be made anew */
        struct arr *a = vkt_array(s, 1000);
        be_vulkan.cache_clear();
        err = try_path(s, a, n);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        failures += err != ERR_OK;
        encode(s, a);
        assert_int_equal(vkt_read(s, a)[999], 999);
        arr_unref(&a);
    }
    assert_int_equal(err, ERR_OK);
    assert_in_range(failures, 3, 100);
}

/* ---- the table ---- */

static const struct fault_case {
    const char *name;
    void (*fn)(void);
    const char *settings[3];
} cases[] = {
    { "lost at submit", lost_at_submit, { NULL } },
    { "lost with work in flight", lost_with_work_in_flight, { NULL } },
    { "lost under a waiter", lost_under_a_waiter, { NULL } },
    { "lost before read-back", lost_before_read_back, { NULL } },
    { "lost before read-back, staged", lost_before_read_back, { "MLX_VK_MEMORY", "staged", NULL } },
    { "failed submission", failed_submission, { NULL } },
    { "failure travels", failure_travels, { NULL } },
    { "failure travels by semaphores", failure_travels_by_semaphores, { NULL } },
    { "failure reaches arrays", failure_reaches_arrays, { NULL } },
    { "failure reaches arrays, staged",
      failure_reaches_arrays,
      { "MLX_VK_MEMORY", "staged", NULL } },
    { "failure of the CPU", cpu_failure_reaches_gpu, { NULL } },
    { "out of device memory", out_of_device_memory, { NULL } },
    { "failed pipeline", failed_pipeline, { NULL } },
    { "no host memory", no_host_memory, { NULL } },
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (!test_in_child(cases[i].fn, cases[i].settings))
            fail_msg("%s", cases[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_faults) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
