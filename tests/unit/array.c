#include "graph/array.h"
#include "eval/wait.h"

#include "graph/memory.h"
#include "graph/op.h"
#include "support/sim.h"
#include "support/testing.h"

#include <math.h>
#include <pthread.h>

static const struct shp vector = { .ndim = 1, .d = { 4 } };
static const struct shp scalar = { 0 };

static struct arr *new_node(struct strm *s, enum op_id op, struct arr *const *in, size_t n)
{
    struct arr *a = NULL;

    assert_ok(arr_new_op(&a, .op = (uint16_t)op, .strm = s, .in = in, .n_in = n,
                         .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    return a;
}

static void expect_active(size_t bytes)
{
    assert_int_equal(memory_active(), bytes);
}

/* ---- making ---- */

static void test_data_is_copied(void **state)
{
    float data[4] = { 1, 2, 3, 4 };
    struct arr *a = NULL;
    const void *host = NULL;

    (void)state;
    assert_ok(arr_new_data(&a, data, &vector, DT_FLOAT32));
    data[0] = 9;
    assert_int_equal(a->size, 4);
    assert_int_equal(a->data_size, 4);
    assert_int_equal(a->flags, LAYOUT_ALL);
    assert_int_equal(arr_nbytes(a), 16);
    assert_true(arr_is_scheduled(a));
    assert_ok(arr_host(&host, a));
    assert_memory_equal(host, ((float[]){ 1, 2, 3, 4 }), 16);
    arr_unref(&a);
    assert_null(a);
}

static void test_empty_arrays_have_no_bytes(void **state)
{
    struct shp s = { .ndim = 2, .d = { 3, 0 } };
    struct arr *a = NULL;
    const void *host = "x";

    (void)state;
    assert_ok(arr_new_data(&a, NULL, &s, DT_FLOAT32));
    assert_int_equal(a->size, 0);
    assert_null(a->buf);
    assert_ok(arr_host(&host, a));
    assert_null(host);
    arr_unref(&a);
}

static void test_numbers_in_every_dtype(void **state)
{
    static const struct {
        enum dtype t;
        double value;
        uint64_t bits;
    } want[] = {
        { DT_BOOL, 2.5, 1 },
        { DT_BOOL, 0, 0 },
        { DT_UINT8, 200, 200 },
        { DT_UINT16, 60000, 60000 },
        { DT_UINT32, 4e9, 4000000000u },
        { DT_UINT64, 9e18, 9000000000000000000u },
        { DT_INT8, -5, 0xfb },
        { DT_INT16, -5, 0xfffb },
        { DT_INT32, -5.9, 0xfffffffb },
        { DT_INT64, -5, (uint64_t)-5 },
        { DT_FLOAT16, 1.5, 0x3e00 },
        { DT_FLOAT16, INFINITY, 0x7c00 },
        { DT_FLOAT32, 1.5, 0x3fc00000 },
        { DT_FLOAT64, 1.5, 0x3ff8000000000000u },
        { DT_BFLOAT16, -1.5, 0xbfc0 },
        { DT_COMPLEX64, 1.5, 0x3fc00000 },
        /* out of range: the values of MLX 0.32 on x86 */
        { DT_UINT8, 300, 44 },
        { DT_UINT8, -300.7, 212 },
        { DT_INT8, 300, 44 },
        { DT_INT8, 3e9, 0 },
        { DT_UINT16, -1, 65535 },
        { DT_INT16, 1e5, (uint16_t)-31072 },
        { DT_INT16, NAN, 0 },
        { DT_INT32, 2147483647.5, INT32_MAX },
        { DT_INT32, -2147483648.5, 0x80000000u },
        { DT_INT32, 3e9, 0x80000000u },
        { DT_INT32, -INFINITY, 0x80000000u },
        { DT_INT32, NAN, 0x80000000u },
        { DT_UINT32, -1, 0xffffffffu },
        { DT_UINT32, -3e9, 1294967296u },
        { DT_UINT32, 5e9, 705032704u },
        { DT_UINT32, 1e19, 0 },
        { DT_INT64, 1e19, (uint64_t)INT64_MIN },
        { DT_INT64, -INFINITY, (uint64_t)INT64_MIN },
        { DT_INT64, NAN, (uint64_t)INT64_MIN },
        { DT_UINT64, -1, UINT64_MAX },
        { DT_UINT64, 1e19, 10000000000000000000u },
        { DT_UINT64, 1.9e19, 0 },
        { DT_UINT64, INFINITY, 0 },
        { DT_UINT64, -1e20, (uint64_t)INT64_MIN },
        { DT_UINT64, NAN, (uint64_t)INT64_MIN },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct arr *a = NULL;
        const void *host = NULL;
        uint64_t bits = 0;
        assert_ok(arr_new_number(&a, want[i].value, want[i].t));
        assert_int_equal(a->ndim, 0);
        assert_int_equal(a->dtype, want[i].t);
        assert_ok(arr_host(&host, a));
        memcpy(&bits, host, dt_size(want[i].t));
        assert_true(bits == want[i].bits);
        arr_unref(&a);
    }
}

static void test_node_knows_its_inputs_params_and_outputs(void **state)
{
    struct slice_params params = { .n = 1, .d = { { 1, 3, 1 } } };
    struct shp matrix = { .ndim = 2, .d = { 2, 3 } };
    struct out_desc desc[2] = { { matrix, DT_INT16 }, { vector, DT_BFLOAT16 } };
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *outs[2] = { NULL, NULL };

    (void)state;
    assert_ok(node_new(
        outs,
        &(struct node_params){
            .op = OP_SLICE, .in = &in.a, .n_in = 1, .params = &params, .out = desc, .n_out = 2 }));
    const struct node *n = outs[0]->node;
    assert_ptr_equal(n, outs[1]->node);
    assert_int_equal(n->op, OP_SLICE);
    assert_int_equal(n->n_in, 1);
    assert_int_equal(n->n_out, 2);
    assert_ptr_equal(n->in[0], in.a);
    assert_int_equal(ref_get(&in.a->rc), 2);
    assert_int_equal(n->params_size, 4 * sizeof(int32_t));
    assert_memory_equal(n->params, &params, n->params_size);
    assert_int_equal(outs[0]->ndim, 2);
    assert_int_equal(outs[0]->shape[1], 3);
    assert_int_equal(outs[0]->strides[0], 3);
    assert_int_equal(outs[1]->shape[0], 4);
    assert_int_equal(outs[1]->dtype, DT_BFLOAT16);
    assert_false(arr_is_scheduled(outs[0]));
    arr_unref(&outs[0]);
    assert_int_equal(ref_get(&in.a->rc), 2); /* the sibling keeps the node */
    arr_unref(&outs[1]);
    assert_int_equal(ref_get(&in.a->rc), 1);
    sim_drop(&in);
}

static void test_sizes_that_do_not_fit_are_refused(void **state)
{
    struct shp huge = { .ndim = 3, .d = { INT32_MAX, INT32_MAX, 8 } };
    struct shp fits_as_bytes_only = { .ndim = 3, .d = { INT32_MAX, INT32_MAX, 1 } };
    struct shp empty = { .ndim = 4, .d = { 0, INT32_MAX, INT32_MAX, 8 } };
    struct arr *a = NULL;

    (void)state;
    assert_fails(ERR_OVERFLOW, arr_new_empty(&a, &huge, DT_UINT8));
    assert_fails(ERR_OVERFLOW, arr_new_empty(&a, &fits_as_bytes_only, DT_INT64));
    assert_fails(ERR_OVERFLOW, arr_new_empty(&a, &empty, DT_UINT8));
    empty.d[3] = 1;
    assert_fails(ERR_OVERFLOW, arr_new_empty(&a, &empty, DT_INT64));
    assert_null(a);
    assert_ok(arr_new_empty(&a, &empty, DT_UINT8));
    arr_unref(&a);
    assert_ok(arr_new_empty(&a, &fits_as_bytes_only, DT_UINT8));
    arr_unref(&a);
}

static void test_float64_stays_off_the_gpu(void **state)
{
    struct strm gpu = { .dev = { DEV_GPU, 0 } }, cpu = { .dev = { DEV_CPU, 0 } };
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT64, 1);
    struct arr *a = NULL;

    (void)state;
    assert_fails(ERR_ARG, arr_new_op(&a, .op = OP_ASTYPE, .strm = &gpu, .in = &in.a, .n_in = 1,
                                     .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    assert_fails(ERR_ARG, arr_new_op(&a, .op = OP_ARANGE, .strm = &gpu,
                                     .out = &(struct out_desc){ vector, DT_FLOAT64 }));
    assert_ok(arr_new_op(&a, .op = OP_ASTYPE, .strm = &cpu, .in = &in.a, .n_in = 1,
                         .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    arr_unref(&a);
    sim_drop(&in);
}

static void test_more_inputs_and_outputs_than_16_bits(void **state)
{
    enum { MANY = 70000 };
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr **list = mem_alloc_array(MANY, sizeof *list);
    struct out_desc *desc = mem_alloc_array(MANY, sizeof *desc);

    (void)state;
    assert_true(list && desc);
    for (int i = 0; i < MANY; i++) {
        list[i] = in.a;
        desc[i] = (struct out_desc){ scalar, DT_INT8 };
    }
    struct arr *joined = new_node(NULL, OP_CONCATENATE, list, MANY);
    assert_int_equal(joined->node->n_in, MANY);
    assert_int_equal(ref_get(&in.a->rc), MANY + 1);
    assert_ok(
        node_new(list, &(struct node_params){
                           .op = OP_SPLIT, .in = &joined, .n_in = 1, .out = desc, .n_out = MANY }));
    assert_int_equal(joined->node->n_out, 1);
    assert_int_equal(list[0]->node->n_out, MANY);
    arr_unref(&joined);
    for (int i = 0; i < MANY; i++)
        arr_unref(&list[i]);
    assert_int_equal(ref_get(&in.a->rc), 1);
    sim_drop(&in);
    mem_free(list);
    mem_free(desc);
}

static void test_no_memory_is_a_status(void **state)
{
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *a = NULL;

    (void)state;
    mem_fail_after(1);
    assert_fails(ERR_NO_MEMORY, arr_new_op(&a, .op = OP_EXP, .in = &in.a, .n_in = 1,
                                           .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    mem_fail_after(0);
    assert_null(a);
    assert_int_equal(ref_get(&in.a->rc), 1);
    sim_drop(&in);

    size_t before = memory_active();
    for (size_t n = 1;; n++) {
        mem_fail_after(n);
        enum err err = arr_new_data(&a, "abcd", &vector, DT_UINT8);
        mem_fail_after(0);
        if (!err)
            break;
        assert_int_equal(err, ERR_NO_MEMORY);
        assert_null(a);
        assert_int_equal(memory_active(), before);
        assert_true(n < 50);
    }
    arr_unref(&a);
}

/* ---- storage and sharing ---- */

static void test_own_storage_is_dense(void **state)
{
    struct shp s = { .ndim = 2, .d = { 2, 3 } };
    struct arr *a = NULL;
    size_t before = memory_active();

    (void)state;
    assert_ok(arr_new_empty(&a, &s, DT_INT16));
    a->strides[0] = 77;
    a->offset = 5;
    assert_ok(arr_alloc(a, &be_sim));
    assert_int_equal(a->strides[0], 3);
    assert_int_equal(a->strides[1], 1);
    assert_int_equal(a->offset, 0);
    assert_int_equal(a->data_size, 6);
    assert_int_equal(a->flags, LAYOUT_ROW | LAYOUT_CONTIGUOUS);
    expect_active(before + 12);
    arr_unref(&a);
    expect_active(before);
}

static void test_storage_like_another_array(void **state)
{
    struct shp s = { .ndim = 2, .d = { 2, 3 } };
    struct arr *a = NULL, *like = NULL;

    (void)state;
    assert_ok(arr_new_empty(&like, &s, DT_INT16));
    assert_ok(arr_new_empty(&a, &s, DT_FLOAT64));
    like->strides[0] = like->strides[1] = 0; /* a scalar stretched to the shape */
    like->data_size = 1;
    like->flags = LAYOUT_CONTIGUOUS;
    assert_ok(arr_alloc_like(a, like, &be_sim));
    assert_int_equal(a->strides[0] + a->strides[1], 0);
    assert_int_equal(a->data_size, 1);
    assert_int_equal(a->buf->size, 8);
    assert_int_equal(a->flags, LAYOUT_CONTIGUOUS);
    arr_unref(&a);
    arr_unref(&like);
}

static void test_views_share_and_offsets_add_up(void **state)
{
    struct sim_arr base = sim_leaf(&vector, DT_INT32, 1);
    struct arr *view = NULL, *view2 = NULL;

    (void)state;
    assert_ok(arr_new_empty(&view, &vector, DT_INT32));
    assert_ok(arr_new_empty(&view2, &vector, DT_INT32));
    arr_share(view, base.a, (int64_t[]){ -1 }, 0, 4, 3);
    assert_int_equal(view->offset, 12);
    assert_int_equal(view->strides[0], -1);
    arr_share(view2, view, (int64_t[]){ 1 }, 0, 4, -2);
    assert_int_equal(view2->offset, 4);
    assert_int_equal(buf_refs(base.a->buf), 3);
    struct buf *b = base.a->buf;
    sim_drop(&base);
    arr_unref(&view);
    assert_int_equal(buf_refs(b), 1);
    arr_unref(&view2);
}

static int dtor_calls;

static void count_dtor(void *arg)
{
    (void)arg;
    dtor_calls++;
}

static void test_adopted_memory_goes_back_once(void **state)
{
    float data[4] = { 0 };
    struct arr *a = NULL, *view = NULL;
    size_t before = memory_active();

    (void)state;
    dtor_calls = 0;
    assert_ok(arr_new_empty(&a, &vector, DT_FLOAT32));
    assert_ok(memory_adopt(&a->buf, data, sizeof data, count_dtor, data));
    expect_active(before + sizeof data);
    assert_ok(arr_new_empty(&view, &vector, DT_FLOAT32));
    arr_share_all(view, a);
    arr_unref(&a);
    assert_int_equal(dtor_calls, 0);
    arr_unref(&view);
    assert_int_equal(dtor_calls, 1);
    expect_active(before);
}

/* ---- donation ---- */

static const struct strm sim_stream = { .index = 1, .be = &be_sim };
static const struct strm cpu_stream = { .index = 2, .be = &be_cpu };

/* The only reference is the consumer's: drops the test's own. */
static struct arr *consumer_of(struct sim_arr *in)
{
    struct arr *out = new_node(NULL, OP_EXP, &in->a, 1);

    sim_drop(in);
    return out;
}

static void test_donation_needs_the_only_reference(void **state)
{
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *handle = arr_ref(in.a), *out = consumer_of(&in), *view = NULL;
    struct arr *donor = out->node->in[0];

    (void)state;
    assert_false(arr_is_donatable(donor, &sim_stream)); /* the handle */
    arr_unref(&handle);
    assert_true(arr_is_donatable(donor, &sim_stream));
    assert_true(arr_can_donate_to(donor, out, &sim_stream));

    assert_ok(arr_new_empty(&view, &vector, DT_FLOAT32));
    arr_share_all(view, donor);
    assert_false(arr_is_donatable(donor, &sim_stream)); /* a view of the bytes */
    arr_unref(&view);
    assert_true(arr_is_donatable(donor, &sim_stream));

    struct arr *second = new_node(NULL, OP_EXP, &donor, 1);
    assert_false(arr_is_donatable(donor, &sim_stream)); /* another consumer */
    arr_unref(&second);

    struct buf *held = buf_ref(donor->buf);
    assert_false(arr_is_donatable(donor, &sim_stream));
    buf_unref(&held);

    donor->tracer = true;
    assert_false(arr_is_donatable(donor, &sim_stream));
    donor->tracer = false;
    assert_true(arr_is_donatable(donor, &sim_stream));
    arr_unref(&out);
}

static void test_donation_is_possible_among_work_of_one_stream(void **state)
{
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *out = consumer_of(&in);
    struct arr *donor = out->node->in[0];
    struct buf *mine[] = { buf_hold(donor->buf, 1), buf_hold(donor->buf, 1) };

    (void)state;
    assert_true(arr_is_donatable(donor, &sim_stream));
    struct buf *foreign = buf_hold(donor->buf, 7);
    assert_false(arr_is_donatable(donor, &sim_stream));
    buf_release(&mine[0], 1);
    buf_release(&mine[1], 1);
    assert_false(arr_is_donatable(donor, &sim_stream));
    /* Held by the other stream before this one could be counted: that errs on the safe side. */
    mine[0] = buf_hold(donor->buf, 1);
    buf_release(&foreign, 7);
    assert_true(arr_is_donatable(donor, &sim_stream));
    buf_release(&mine[0], 1);
    assert_true(arr_is_donatable(donor, &sim_stream));
    arr_unref(&out);
}

static void test_donation_needs_memory_of_the_same_home(void **state)
{
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *out = consumer_of(&in);
    struct arr *donor = out->node->in[0];

    (void)state;
    assert_false(arr_is_donatable(donor, &cpu_stream));
    donor->buf->addr = 4096; /* both sides can address it */
    assert_true(arr_is_donatable(donor, &cpu_stream));
    donor->buf->dtor = count_dtor; /* the caller's own memory is never written */
    assert_false(arr_is_donatable(donor, &sim_stream));
    donor->buf->dtor = NULL;
    arr_unref(&out);
}

static void test_donation_needs_a_fitting_buffer(void **state)
{
    struct shp large = { .ndim = 1, .d = { 16384 / 4 + 5 } };
    struct sim_arr in = sim_leaf(&large, DT_FLOAT32, 1);
    struct arr *out = consumer_of(&in), *wide = NULL, *none = NULL;
    struct arr *donor = out->node->in[0];

    (void)state;
    assert_int_equal(out->size, 4);
    assert_false(arr_can_donate_to(donor, out, &sim_stream)); /* pins 4 bytes more than the slack */
    donor->buf->size -= 4;
    assert_true(arr_can_donate_to(donor, out, &sim_stream));
    donor->buf->size += 4;
    assert_ok(arr_new_empty(&wide, &large, DT_FLOAT64));
    assert_false(arr_can_donate_to(donor, wide, &sim_stream)); /* elements of another size */
    assert_ok(arr_new_empty(&none, &vector, DT_FLOAT32));
    assert_false(arr_is_donatable(none, &sim_stream)); /* no bytes at all */
    arr_unref(&wide);
    arr_unref(&none);
    arr_unref(&out);
}

/* ---- nodes with several outputs ---- */

static void make_three(struct arr **outs, struct arr *in)
{
    struct out_desc desc[3] = { { vector, DT_INT32 }, { vector, DT_INT32 }, { vector, DT_INT32 } };

    assert_ok(node_new(outs, &(struct node_params){
                                 .op = OP_SPLIT, .in = &in, .n_in = 1, .out = desc, .n_out = 3 }));
}

/* What eval does to a node, without a device. */
static void run_by_hand(struct node *n)
{
    node_pin(n);
    for (int i = 0; i < n->n_out; i++) {
        assert_ok(arr_alloc(&n->out[i], &be_sim));
        atomic_store(&n->out[i].status, ARR_EVALUATED);
    }
    node_detach(n);
    node_unpin(n);
}

static void test_siblings_are_dropped_in_any_order(void **state)
{
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    size_t before = memory_active();

    (void)state;
    for (int o = 0; o < 6; o++)
        for (int run_after = 0; run_after <= 3; run_after++) {
            struct sim_arr in = sim_leaf(&vector, DT_INT32, 1);
            struct arr *outs[3];
            make_three(outs, in.a);
            sim_drop(&in);
            for (int k = 0; k < 3; k++) {
                if (k == run_after)
                    run_by_hand(outs[orders[o][k]]->node);
                arr_unref(&outs[orders[o][k]]);
            }
            expect_active(before);
        }
}

/* An evaluated output gives its bytes back at once, though its siblings keep the node. */
static void test_dropped_sibling_releases_its_bytes(void **state)
{
    struct sim_arr in = sim_leaf(&vector, DT_INT32, 1);
    struct arr *outs[3];
    size_t before;

    (void)state;
    make_three(outs, in.a);
    arr_unref(&outs[1]); /* before it is evaluated */
    before = memory_active();
    run_by_hand(outs[0]->node);
    expect_active(before + 2 * 16);
    assert_int_equal(ref_get(&in.a->rc), 1);
    arr_unref(&outs[0]);
    expect_active(before + 16);
    arr_unref(&outs[2]);
    expect_active(before);
    sim_drop(&in);
}

static void test_pinned_node_survives_its_owners(void **state)
{
    struct sim_arr in = sim_leaf(&vector, DT_INT32, 1);
    struct arr *outs[3];
    size_t before = memory_active();

    (void)state;
    make_three(outs, in.a);
    struct node *n = outs[0]->node;
    arr_unref(&outs[2]);
    node_pin(n);
    assert_int_equal(ref_get(&n->out[2].rc), 1); /* without owner, kept by the pin */
    arr_unref(&outs[0]);
    arr_unref(&outs[1]);
    assert_int_equal(n->n_out, 3);
    assert_int_equal(ref_get(&in.a->rc), 2);
    node_unpin(n);
    assert_int_equal(ref_get(&in.a->rc), 1);
    sim_drop(&in);
    expect_active(before - 16);
}

static void test_detached_node_is_a_leaf(void **state)
{
    struct sim_arr in[2] = { sim_leaf(&vector, DT_FLOAT32, 1), sim_leaf(&vector, DT_FLOAT32, 2) };
    struct arr *a = new_node(NULL, OP_ADD, (struct arr *[]){ in[0].a, in[1].a }, 2);

    (void)state;
    node_detach(a->node);
    assert_int_equal(a->node->op, OP_NONE);
    assert_int_equal(a->node->n_in, 0);
    assert_int_equal(ref_get(&in[0].a->rc), 1);
    assert_int_equal(ref_get(&in[1].a->rc), 1);
    node_detach(a->node);
    arr_unref(&a);
    sim_drop(&in[0]);
    sim_drop(&in[1]);
}

/* ---- large graphs: freed on a stack that recursion would not fit ---- */

enum { MILLION = 1000000 };

static void *free_graph(void *arg)
{
    struct arr *root = arg;

    arr_unref(&root);
    return NULL;
}

static void free_on_a_small_stack(struct arr *root)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, 128 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, free_graph, root), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

static void test_chain_of_a_million_nodes_is_freed(void **state)
{
    struct sim_arr leaf = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *a = arr_ref(leaf.a);

    (void)state;
    for (int i = 0; i < MILLION; i++) {
        struct arr *in[2] = { a, i % 3 ? a : leaf.a };
        struct arr *next = new_node(NULL, OP_ADD, in, 2);
        arr_unref(&a);
        a = next;
    }
    free_on_a_small_stack(a);
    assert_int_equal(ref_get(&leaf.a->rc), 1);
    sim_drop(&leaf);
}

static void test_tree_of_two_output_nodes_is_freed(void **state)
{
    enum { DEPTH = 17 };
    struct sim_arr leaf = sim_leaf(&vector, DT_INT32, 1);
    struct arr **level = mem_alloc_array(1u << DEPTH, sizeof *level);
    struct out_desc desc[2] = { { vector, DT_INT32 }, { vector, DT_INT32 } };

    (void)state;
    assert_non_null(level);
    for (int i = 0; i < 1 << DEPTH; i++)
        level[i] = arr_ref(leaf.a);
    for (int n = 1 << DEPTH; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++) {
            struct arr *in[2] = { level[2 * i], level[2 * i + 1] }, *outs[2];
            assert_ok(node_new(
                outs, &(struct node_params){
                          .op = OP_DIVMOD, .in = in, .n_in = 2, .out = desc, .n_out = 2 }));
            arr_unref(&in[0]);
            arr_unref(&in[1]);
            arr_unref(&outs[i % 2]); /* either output may be the one that is used */
            level[i] = outs[!(i % 2)];
        }
    free_on_a_small_stack(level[0]);
    assert_int_equal(ref_get(&leaf.a->rc), 1);
    sim_drop(&leaf);
    mem_free(level);
}

/* ---- status ---- */

static void test_reading_an_array_that_was_never_scheduled(void **state)
{
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *a = new_node(NULL, OP_EXP, &in.a, 1);
    bool available = true;

    (void)state;
    assert_ok(arr_is_available(&available, a));
    assert_false(available);
    assert_fails(ERR_ARG, arr_wait(a));
    arr_unref(&a);
    sim_drop(&in);
}

static void test_event_decides_availability(void **state)
{
    struct strm *s = sim_strm_new();
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *a = new_node(s, OP_EXP, &in.a, 1);
    struct buf *work[] = { in.a->buf };
    bool available = true;

    (void)state;
    assert_ok(s->be->hold(s, work, 1)); /* some work that is not done yet */
    assert_ok(ev_new(&a->ev, s));
    assert_ok(ev_record(a->ev));
    atomic_store(&a->status, ARR_EVALUATED);
    assert_ok(arr_is_available(&available, a));
    assert_false(available);
    assert_non_null(a->ev);
    assert_ok(s->be->flush(s));
    assert_ok(arr_wait(a));
    assert_int_equal(sim_pending(s), 0);
    assert_null(a->ev);
    assert_int_equal(atomic_load(&a->status), ARR_AVAILABLE);
    assert_ok(arr_is_available(&available, a));
    assert_true(available);
    arr_unref(&a);
    sim_drop(&in);
    sim_strm_free(&s);
}

static void test_failure_of_the_stream_surfaces_once(void **state)
{
    struct strm *s = sim_strm_new();
    struct sim_arr in = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *a = new_node(s, OP_EXP, &in.a, 1);

    (void)state;
    assert_ok(ev_new(&a->ev, s));
    assert_ok(ev_record(a->ev));
    atomic_store(&a->status, ARR_EVALUATED);
    strm_note_error(s, a->ev->ticket, err_set(ERR_DEVICE, "lost"));
    assert_fails(ERR_DEVICE, arr_wait(a));
    assert_string_equal(err_text(), "lost");
    assert_ok(arr_wait(a));
    arr_unref(&a);
    sim_drop(&in);
    sim_strm_free(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sim_setup, sim_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_data_is_copied),
        TEST(test_empty_arrays_have_no_bytes),
        TEST(test_numbers_in_every_dtype),
        TEST(test_node_knows_its_inputs_params_and_outputs),
        TEST(test_sizes_that_do_not_fit_are_refused),
        TEST(test_float64_stays_off_the_gpu),
        TEST(test_more_inputs_and_outputs_than_16_bits),
        TEST(test_no_memory_is_a_status),
        TEST(test_own_storage_is_dense),
        TEST(test_storage_like_another_array),
        TEST(test_views_share_and_offsets_add_up),
        TEST(test_adopted_memory_goes_back_once),
        TEST(test_donation_needs_the_only_reference),
        TEST(test_donation_is_possible_among_work_of_one_stream),
        TEST(test_donation_needs_memory_of_the_same_home),
        TEST(test_donation_needs_a_fitting_buffer),
        TEST(test_siblings_are_dropped_in_any_order),
        TEST(test_dropped_sibling_releases_its_bytes),
        TEST(test_pinned_node_survives_its_owners),
        TEST(test_detached_node_is_a_leaf),
        TEST(test_chain_of_a_million_nodes_is_freed),
        TEST(test_tree_of_two_output_nodes_is_freed),
        TEST(test_reading_an_array_that_was_never_scheduled),
        TEST(test_event_decides_availability),
        TEST(test_failure_of_the_stream_surfaces_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
