#include "base/gate.h"

#include "base/log.h"
#include "support/testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the table ---- */

static void test_rows_are_well_formed(void **state)
{
    (void)state;
    for (int i = 0; i < GATE_COUNT; i++) {
        const struct gate_info *g = &gate_table[i];
        assert_true(g->variable[0] && g->text[0]);
        if (g->kind == GATE_KIND_INT)
            assert_true(g->min <= g->def && g->def <= g->max);
        if (g->kind == GATE_KIND_BOOL)
            assert_true(g->def == 0 || g->def == 1);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(g->variable, gate_table[k].variable);
    }
}

/* ---- reading the environment: each case in a process that has not read it yet ---- */

static int warnings;
static char last_warning[256];

static void count_line(enum log_level level, const char *line, void *data)
{
    (void)level;
    (void)data;
    warnings++;
    strncpy(last_warning, line, sizeof last_warning - 1);
}

/* Runs body in a child process with the variable set; the child's exit code says whether it held.
 */
static bool holds_with(const char *variable, const char *value, bool (*body)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        warnings = 0;
        log_set_sink(count_line, NULL);
        if (variable)
            setenv(variable, value, 1);
        _exit(body() ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool fuse_is_on(void)
{
    return gate_on(GATE_PLAN_FUSE) && warnings == 0;
}

static bool fuse_is_off(void)
{
    return !gate_on(GATE_PLAN_FUSE) && warnings == 0;
}

static bool fuse_is_on_with_a_warning(void)
{
    return gate_on(GATE_PLAN_FUSE) && warnings == 1 &&
           strstr(last_warning, gate_table[GATE_PLAN_FUSE].variable);
}

static bool width_is_7(void)
{
    return gate_int(GATE_BFS_MAX_WIDTH) == 7 && warnings == 0;
}

static bool width_is_default(void)
{
    return gate_int(GATE_BFS_MAX_WIDTH) == gate_table[GATE_BFS_MAX_WIDTH].def && warnings == 0;
}

static bool width_is_default_with_a_warning(void)
{
    return gate_int(GATE_BFS_MAX_WIDTH) == gate_table[GATE_BFS_MAX_WIDTH].def && warnings == 1;
}

static bool device_is_unset(void)
{
    return gate_text(GATE_VK_DEVICE) == NULL && warnings == 0;
}

static bool device_is_radv(void)
{
    return strcmp(gate_text(GATE_VK_DEVICE), "radv, 2") == 0 && warnings == 0;
}

static void test_bool_words(void **state)
{
    static const char *const on[] = { "1", "true", "ON", "Yes" };
    static const char *const off[] = { "0", "false", "Off", "no" };
    static const char *const bad[] = { "", "2", "maybe", "1 ", "truex" };
    const char *variable = gate_table[GATE_PLAN_FUSE].variable;

    (void)state;
    assert_true(holds_with(NULL, NULL, fuse_is_on));
    for (size_t i = 0; i < ARRAY_LEN(on); i++)
        assert_true(holds_with(variable, on[i], fuse_is_on));
    for (size_t i = 0; i < ARRAY_LEN(off); i++)
        assert_true(holds_with(variable, off[i], fuse_is_off));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_true(holds_with(variable, bad[i], fuse_is_on_with_a_warning));
}

static void test_ints_and_their_range(void **state)
{
    static const char *const bad[] = {
        "", "0", "-3", "1e3", "seven", "1000001", "99999999999999999999"
    };
    const char *variable = gate_table[GATE_BFS_MAX_WIDTH].variable;

    (void)state;
    assert_true(holds_with(NULL, NULL, width_is_default));
    assert_true(holds_with(variable, "7", width_is_7));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_true(holds_with(variable, bad[i], width_is_default_with_a_warning));
}

static void test_texts(void **state)
{
    (void)state;
    assert_true(holds_with(gate_table[GATE_VK_DEVICE].variable, "", device_is_unset));
    assert_true(holds_with(gate_table[GATE_VK_DEVICE].variable, "radv, 2", device_is_radv));
}

static bool has_qmm_and_fft(void)
{
    char room[GATE_ROOM];

    return strcmp(gate_format(GATE_VK_STATS, room), "QMM,FFT") == 0 &&
           gate_has(GATE_VK_STATS, FAMILY_QMM) && !gate_has(GATE_VK_STATS, FAMILY_CONV) &&
           warnings == 0;
}

static bool has_pipelines(void)
{
    return gate_int(GATE_VK_STATS) == 1 << FAMILY_PIPELINE && warnings == 0;
}

static bool has_all(void)
{
    return gate_int(GATE_VK_STATS) == FAMILIES_ALL && warnings == 0;
}

static bool has_none(void)
{
    return gate_int(GATE_VK_STATS) == 0 && warnings == 0;
}

static bool has_none_with_a_warning(void)
{
    return gate_int(GATE_VK_STATS) == 0 && warnings == 1;
}

static bool logs_rejects_of_gather(void)
{
    return gate_int(GATE_VK_DEBUG_REJECT) == 1 << FAMILY_GATHER && warnings == 0;
}

static void test_families(void **state)
{
    static const char *const bad[] = { "", "2", "qmm,", ",qmm", "qmm,,fft", "qm", "qmm fft" };
    const char *variable = gate_table[GATE_VK_STATS].variable;

    (void)state;
    assert_true(holds_with(NULL, NULL, has_none));
    assert_true(holds_with(variable, "0", has_none));
    assert_true(holds_with(variable, "1", has_all));
    assert_true(holds_with(variable, "fft,QMM", has_qmm_and_fft));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_true(holds_with(variable, bad[i], has_none_with_a_warning));
}

static bool warns_about_nothing(void)
{
    gate_warn_unknown();
    return warnings == 0;
}

static bool warns_about_something(void)
{
    gate_warn_unknown();
    return warnings == 1;
}

/* Variables that say a part of another. */
static void test_aliases(void **state)
{
    (void)state;
    assert_true(holds_with("MLX_VK_ALGO_STATS", "1", has_pipelines));
    assert_true(holds_with("MLX_VK_ALGO_STATS", "0", has_none));
    assert_true(holds_with("MLX_VK_ALGO_STATS", "some", has_none_with_a_warning));
    assert_true(holds_with("MLX_VK_DEBUG_GATHER_REJECT", "on", logs_rejects_of_gather));
    assert_true(holds_with("MLX_VK_DEBUG_GATHER_REJECT", "on", warns_about_nothing));
    assert_true(holds_with("MLX_VK_DEBUG_BREAD_REJECT", "on", warns_about_something));
}

static bool warns_once_about_the_stranger(void)
{
    gate_warn_unknown();
    return warnings == 1 && strstr(last_warning, "MLX_NO_SUCH_SETTING");
}

static void test_unknown_names_are_reported(void **state)
{
    (void)state;
    assert_true(holds_with("MLX_NO_SUCH_SETTING", "1", warns_once_about_the_stranger));
    assert_true(holds_with("MLX_BFS_MAX_WIDTH", "5", warns_about_nothing));
    assert_true(holds_with("OTHER_SETTING", "5", warns_about_nothing));
}

/* ---- overrides ---- */

static void test_override_and_restore(void **state)
{
    (void)state;
    int64_t width = gate_int(GATE_BFS_MAX_WIDTH);
    assert_int_equal(gate_set_int(GATE_BFS_MAX_WIDTH, 3), width);
    assert_int_equal(gate_int(GATE_BFS_MAX_WIDTH), 3);
    assert_int_equal(gate_set_int(GATE_BFS_MAX_WIDTH, width), 3);
    const char *device = gate_set_text(GATE_VK_DEVICE, "1");
    assert_string_equal(gate_text(GATE_VK_DEVICE), "1");
    assert_string_equal(gate_set_text(GATE_VK_DEVICE, device), "1");
    assert_int_equal(gate_on(GATE_PLAN_FUSE), 1);
    gate_set_int(GATE_PLAN_FUSE, 0);
    assert_false(gate_on(GATE_PLAN_FUSE));
    gate_set_int(GATE_PLAN_FUSE, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_well_formed),
        cmocka_unit_test(test_bool_words),
        cmocka_unit_test(test_ints_and_their_range),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_unknown_names_are_reported),
        cmocka_unit_test(test_override_and_restore),
    };

    /* What the caller's environment says is no part of the test. */
    for (int i = 0; i < GATE_COUNT; i++)
        unsetenv(gate_table[i].variable);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
