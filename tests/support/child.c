#include "support/child.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.h"

/* cmocka reports a failed check by leaving the test function, so the child runs the function as a
 * test of its own. */
static void (*child_fn)(void);

static void run_child(void **state)
{
    (void)state;
    child_fn();
}

static void be_child(void (*fn)(void), const char *const *settings)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(run_child) };

    for (; settings && settings[0]; settings += 2)
        setenv(settings[0], settings[1], 1);
    child_fn = fn;
    exit(cmocka_run_group_tests_name("child", tests, NULL, NULL));
}

static bool succeeded(pid_t pid)
{
    int status = 1;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

bool test_in_child(void (*fn)(void), const char *const *settings)
{
    pid_t pid = fork();

    if (pid == 0)
        be_child(fn, settings);
    return succeeded(pid);
}

/* Reads to the end, so that the child never waits for room. */
static void read_all(int fd, char *text, size_t size)
{
    char rest[4096];
    size_t used = 0;

    for (;;) {
        bool fits = used + 1 < size;
        ssize_t n = fits ? read(fd, text + used, size - 1 - used) : read(fd, rest, sizeof rest);
        if (n <= 0)
            break;
        used += fits ? (size_t)n : 0;
    }
    text[used] = '\0';
}

bool test_in_child_text(void (*fn)(void), const char *const *settings, char *text, size_t size)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        be_child(fn, settings);
    }
    close(ends[1]);
    read_all(ends[0], text, size);
    close(ends[0]);
    return succeeded(pid);
}

int test_count(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}
