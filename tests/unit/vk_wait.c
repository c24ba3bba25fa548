/* GPU streams that wait for the CPU: nobody who encodes is held up, bytes that the CPU has yet to
 * write arrive, and what does not wait goes on. Each memory strategy in a process of its own. */
#include "eval/wait.h"
#include "support/child.h"
#include "support/testing.h"
#include "support/vk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "backend/vulkan/check/fault.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "ops/ops.h"

#define N 3000

/* ---- CPU work that waits until it is let go ---- */

static atomic_bool gate_is_open;

static enum err run_gate(void *payload)
{
    (void)payload;
    while (!gate_is_open)
        usleep(100);
    return ERR_OK;
}

static enum err run_fill(void *payload)
{
    struct buf *b;

    memcpy(&b, payload, sizeof b);
    for (uint32_t i = 0; i < N; i++)
        ((uint32_t *)b->host)[i] = i * 3;
    return ERR_OK;
}

static struct strm *cpu_stream(void)
{
    struct strm *s = NULL;

    assert_ok(strm_new(&s, (struct dev){ DEV_CPU, 0 }));
    return s;
}

static struct ev *record(struct strm *s)
{
    struct ev *e = NULL;

    assert_ok(ev_new(&e, s));
    assert_ok(ev_record(e));
    return e;
}

/* Memory that a CPU task will fill with 3 * i once the gate is open. */
static struct arr *pending_array(struct strm *cpu)
{
    struct shp shape = { 1, { N } };
    struct arr *a = NULL;

    gate_is_open = false;
    assert_ok(arr_new_empty(&a, &shape, DT_UINT32));
    assert_ok(arr_alloc(a, &be_cpu));
    memset(a->buf->host, 0, N * sizeof(uint32_t));
    assert_ok(cpu_enqueue(cpu, run_gate, NULL, 0));
    assert_ok(cpu_enqueue(cpu, run_fill, &a->buf, sizeof a->buf));
    return a;
}

static void assert_values(struct strm *s, struct arr *a, uint32_t mul, uint32_t add)
{
    const uint32_t *v = vkt_read(s, a);

    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(v[i], i * mul + add);
}

static bool is_done(struct ev *e)
{
    bool done = true;

    assert_ok(ev_query(&done, e));
    return done;
}

/* ---- cases ---- */

static void encoding_goes_on(void)
{
    struct strm *cpu = cpu_stream(), *s = vkt_stream();
    struct arr *in = pending_array(cpu), *mid = vkt_array(s, N), *out = vkt_array(s, N);
    struct ev *e = record(cpu);

    assert_ok(ev_wait_on(s, e));
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = mid, .mul = 1, .add = 5 });
    assert_ok(s->be->flush(s));
    vkt_encode(s, &(struct vkt_probe){ .in = mid, .out = out, .mul = 2 });
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = mid, .mul = 1, .add = 7 });
    struct ev *end = record(s);
    assert_ok(s->be->flush(s));
    assert_false(is_done(e)); /* all of that while the CPU had not even begun */
    assert_false(is_done(end));
    gate_is_open = true;
    assert_ok(ev_wait(end));
    assert_values(s, out, 6, 10);
    assert_values(s, mid, 3, 7);
    ev_unref(&e);
    ev_unref(&end);
    arr_unref(&in);
    arr_unref(&mid);
    arr_unref(&out);
}

/* Streams of the same queue that do not wait are not held up by one that does. */
static void others_go_on(void)
{
    struct strm *cpu = cpu_stream(), *s = vkt_stream(), *other = vkt_stream();
    struct arr *in = pending_array(cpu), *out = vkt_array(s, N), *free = vkt_array(other, N);
    struct ev *e = record(cpu);

    assert_ok(ev_wait_on(s, e));
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = out, .mul = 1 });
    assert_ok(s->be->flush(s));
    vkt_encode(other, &(struct vkt_probe){ .out = free, .mul = 9 });
    assert_values(other, free, 9, 0);
    assert_false(is_done(e));
    gate_is_open = true;
    assert_values(s, out, 3, 0);
    ev_unref(&e);
    arr_unref(&in);
    arr_unref(&out);
    arr_unref(&free);
}

/* CPU, GPU, another GPU stream, the CPU and the first GPU stream again, all before the first of
 * them runs. */
static void chain(void)
{
    struct strm *cpu = cpu_stream(), *back = cpu_stream(), *s = vkt_stream(), *t = vkt_stream();
    struct arr *in = pending_array(cpu), *a = vkt_array(s, N), *b = vkt_array(t, N);
    struct arr *c = vkt_array(s, N);
    struct ev *e[4] = { record(cpu), NULL, NULL, NULL };

    assert_ok(ev_wait_on(s, e[0]));
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = a, .mul = 1, .add = 1 });
    e[1] = record(s);
    assert_ok(s->be->flush(s));
    assert_ok(ev_wait_on(t, e[1]));
    vkt_encode(t, &(struct vkt_probe){ .in = a, .out = b, .mul = 1, .add = 1 });
    vkt_encode(t, &(struct vkt_probe){ .in = in, .out = a, .mul = 5 });
    e[2] = record(t);
    assert_ok(t->be->flush(t));
    assert_ok(ev_wait_on(back, e[2]));
    e[3] = record(back);
    assert_ok(ev_wait_on(s, e[3]));
    vkt_encode(s, &(struct vkt_probe){ .in = b, .out = c, .mul = 2 });
    assert_ok(s->be->flush(s));
    for (int i = 0; i < 4; i++)
        assert_false(is_done(e[i]));
    gate_is_open = true;
    assert_values(s, c, 6, 4);
    assert_values(t, a, 15, 0);
    for (int i = 0; i < 4; i++) {
        assert_true(is_done(e[i]));
        ev_unref(&e[i]);
    }
    arr_unref(&in);
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&c);
}

static void chain_by_semaphores(void)
{
    vk_fault_set(VK_FAULT_TIMELINE, -1);
    chain();
    vk_fault_set(VK_FAULT_TIMELINE, 0);
}

static void *open_later(void *arg)
{
    usleep(20000);
    gate_is_open = true;
    return arg;
}

/* Only when too many commits wait for their turn does the caller wait with them. */
static void many_commits(void)
{
    struct strm *cpu = cpu_stream(), *s = vkt_stream();
    struct arr *in = pending_array(cpu), *out = vkt_array(s, N);
    struct ev *e = record(cpu);
    pthread_t thread;

    assert_ok(ev_wait_on(s, e));
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = out, .mul = 1 });
    for (int64_t i = 1; i < gate_int(GATE_VK_MAX_INFLIGHT); i++) {
        assert_ok(s->be->flush(s));
        vkt_encode(s, &(struct vkt_probe){ .in = out, .out = out, .mul = 1, .add = 1 });
    }
    assert_ok(s->be->flush(s));
    assert_false(is_done(e));
    assert_int_equal(pthread_create(&thread, NULL, open_later, NULL), 0);
    for (int i = 0; i < 30; i++) {
        vkt_encode(s, &(struct vkt_probe){ .in = out, .out = out, .mul = 1, .add = 1 });
        assert_ok(s->be->flush(s));
    }
    assert_true(is_done(e));
    assert_values(s, out, 3, 30 + (uint32_t)gate_int(GATE_VK_MAX_INFLIGHT) - 1);
    pthread_join(thread, NULL);
    ev_unref(&e);
    arr_unref(&in);
    arr_unref(&out);
}

/* A graph over both devices: async_eval returns at once, and the values are right. */
static void graphs(void)
{
    struct strm *cpu = cpu_stream(), *s = vkt_stream();
    struct arr *one = NULL, *x = NULL, *y = NULL, *z = NULL;
    struct shp shape = { 1, { N } };
    uint32_t data[N];
    const void *host;
    bool available = true;

    for (uint32_t i = 0; i < N; i++)
        data[i] = i;
    gate_is_open = false;
    assert_ok(cpu_enqueue(cpu, run_gate, NULL, 0));
    assert_ok(arr_new_data(&one, data, &shape, DT_UINT32));
    assert_ok(ops_binary(&x, OP_ADD, one, one, cpu));
    assert_ok(ops_binary(&y, OP_ADD, x, one, s));
    assert_ok(ops_binary(&z, OP_MULTIPLY, y, x, cpu));
    uint64_t waits = stat_get(STAT_HOST_WAITS);
    assert_ok(eval_arrays(&z, 1, true));
    assert_ok(arr_is_available(&available, z));
    assert_false(available);
    assert_int_equal(stat_get(STAT_HOST_WAITS) - waits, 0);
    gate_is_open = true;
    assert_ok(arr_host(&host, z));
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(((const uint32_t *)host)[i], 6 * i * i);
    arr_unref(&one);
    arr_unref(&x);
    arr_unref(&y);
    arr_unref(&z);
}

static void all_cases(void)
{
    encoding_goes_on();
    others_go_on();
    chain();
    chain_by_semaphores();
    many_commits();
    graphs();
    assert_int_equal(stat_get(STAT_VALIDATION_MESSAGES), 0);
}

static void test_strategies(void **state)
{
    static const char *const strategies[] = { "unified", "bar", "staged" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++) {
        const char *settings[] = { "MLX_VK_MEMORY", strategies[i], "MLX_VK_VALIDATE", "1", NULL };
        if (!test_in_child(all_cases, settings))
            fail_msg("%s", strategies[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_strategies) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
