"""Streams, contexts, threads, and the end of a process with work in flight."""

import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import mlx.core as mx
import pytest


def in_thread(fn):
    result = []

    def run():
        try:
            result.append(fn())
        except Exception as e:
            result.append(e)

    t = threading.Thread(target=run)
    t.start()
    t.join()
    return result[0]


# ---- streams ----


def test_contexts_set_stream_and_device_and_put_them_back(device):
    s = mx.new_stream(getattr(mx, device))
    before = mx.default_device(), mx.default_stream(mx.default_device())
    with mx.stream(s):
        assert mx.default_stream(mx.default_device()) == s
        with mx.stream(mx.cpu):
            assert mx.default_device() == mx.cpu
        assert mx.default_device() == s.device
        assert mx.add(1, 2).item() == 3
    assert (mx.default_device(), mx.default_stream(mx.default_device())) == before
    mx.synchronize(s)


def test_a_context_ends_with_an_exception():
    before = mx.default_stream(mx.cpu)
    with pytest.raises(KeyError):
        with mx.stream(mx.new_stream(mx.cpu)):
            raise KeyError
    assert mx.default_stream(mx.cpu) == before


def test_what_is_no_stream():
    for bad in (None, 3, "cpu"):
        with pytest.raises(TypeError):
            mx.stream(bad)


def test_streams_belong_to_threads():
    s, u, t = (
        mx.new_stream(mx.cpu),
        mx.new_thread_unsafe_stream(mx.cpu),
        mx.new_thread_local_stream(mx.cpu),
    )

    def use(stream):
        def run():
            with mx.stream(stream):
                return (mx.arange(3) + 1).tolist()

        return run

    assert isinstance(in_thread(use(s)), RuntimeError)
    for stream in (u, t):
        assert use(stream)() == [1, 2, 3] and in_thread(use(stream)) == [1, 2, 3]
    assert repr(t).startswith("ThreadLocalStream(Device(cpu, 0), ")
    with pytest.raises(TypeError):
        mx.set_default_stream(t)


def test_a_thread_local_stream_is_another_one_in_every_thread():
    t = mx.new_thread_local_stream(mx.cpu)

    def which():
        with mx.stream(t):
            return repr(mx.default_stream(mx.cpu))

    assert which() == which() and in_thread(which) != which()


def test_random_state_is_the_threads():
    mx.random.seed(3)
    mine = mx.random.state[0].tolist()
    in_thread(lambda: mx.random.seed(4))
    assert mx.random.state[0].tolist() == mine == [0, 3]
    assert len(mx.random.state) == 1 and [k.tolist() for k in mx.random.state] == [mine]
    with pytest.raises(IndexError):
        mx.random.state[1]
    with pytest.raises(TypeError):
        mx.random.state[0] = mx.array([1, 2])


def test_keys_follow_each_other_as_in_mlx():
    mx.random.seed(0)
    seen = []
    for _ in range(3):
        mx.random.uniform()
        seen.append(mx.random.state[0].tolist())
    mx.random.seed(0)
    key = mx.array([0, 0], mx.uint32)
    for state in seen:
        key = mx.random.split(key)[0]
        assert key.tolist() == state


def test_clear_streams(device):
    f = mx.compile(lambda a: a + 1)
    f(mx.array(1))
    x = mx.ones(1000) * 2
    mx.async_eval(x)
    mx.clear_streams()
    assert f(mx.array(1)).item() == 2 and x.sum().item() == 2000


def test_transforms_in_many_threads(device):
    x = mx.array([1.0, 2.0, 3.0])
    work = [
        mx.grad(lambda a: (a * a).sum()),
        mx.compile(lambda a: a * a + 1),
        mx.vmap(lambda a: a * a),
    ]
    expected = [f(x).tolist() for f in work]
    wrong = []

    def run(i):
        mx.set_default_device(getattr(mx, device))
        for _ in range(100):
            if work[i](x).tolist() != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(i % 3,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_other_threads_run_while_one_waits():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(1)
            time.sleep(0.001)

    t = threading.Thread(target=tick)
    t.start()
    a = mx.random.normal((1200, 1200))
    for _ in range(6):
        a = a @ a * 1e-3
    mx.eval(a)
    stop.set()
    t.join()
    assert len(ticks) > 5


# ---- the end of a process ----

HEAVY = """
    import sys, mlx.core as mx
    mx.set_default_device(getattr(mx, sys.argv[1]))
    def work(n=6):
        a = mx.random.normal((700, 700))
        for _ in range(n):
            a = (a @ a) * 1e-3
        return a
"""


def run(device, code, timeout=120, **kwargs):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HEAVY) + textwrap.dedent(code), device],
        timeout=timeout,
        capture_output=True,
        text=True,
        **kwargs,
    )


def test_exit_with_work_in_flight(device):
    done = run(device, "mx.async_eval(work()); print('end')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_exit_with_rules_and_threads_in_flight(device):
    done = run(
        device,
        """
        import threading
        f = mx.custom_function(lambda a: a * 2)
        f.vjp(lambda p, c, o: c * 2)
        kept = mx.grad(lambda a: f(a).sum())(work())
        mx.async_eval(kept)
        c = mx.compile(lambda a: a + kept.sum())
        mx.async_eval(c(mx.array(1.0)))
        def forever():
            while True:
                mx.eval(work(1))
        threading.Thread(target=forever, daemon=True).start()
        print('end')
        """,
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_exit_by_an_exception(device):
    done = run(device, "mx.async_eval(work()); raise SystemExit(3)")
    assert done.returncode == 3, done.stderr


def test_interrupt_in_a_long_evaluation(device):
    code = """
        import os, signal, threading
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            for _ in range(10000):
                mx.eval(work(2))
            print('never')
        except KeyboardInterrupt:
            print('interrupted', mx.add(1, 2).item())
    """
    done = run(device, code)
    assert (done.returncode, done.stdout) == (0, "interrupted 3\n"), done.stderr


def test_interrupt_ends_the_process(device):
    p = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(HEAVY) + "print('go', flush=True)\nwhile True: mx.eval(work(2))",
            device,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert p.stdout.readline() == "go\n"
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=120)
    assert p.returncode in (1, -signal.SIGINT) and "KeyboardInterrupt" in err


def test_a_forked_child_ends(device):
    code = """
        import os, warnings
        warnings.simplefilter('ignore')
        a = work(2)
        mx.eval(a)
        mx.async_eval(work(3))
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        child = os.waitpid(pid, 0)[1]
        pid = os.fork()
        if pid == 0:
            sys.exit(8)
        print(os.waitstatus_to_exitcode(child), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        print(mx.add(1, 2).item())
    """
    done = run(device, code)
    assert (done.returncode, done.stdout) == (0, "7 8\n3\n"), done.stderr


def test_shutdown_with_everything_alive(device):
    """Arrays, streams and functions that outlive the modules, and code that runs among the last."""
    code = """
        import atexit, builtins, threading
        import mlx.nn as nn

        class Late:
            def __init__(self):
                self.array = work(1)
                self.streams = mx.default_stream(mx.cpu), mx.new_stream(mx.default_device())
            def __del__(self):
                try:
                    mx.eval(self.array + 1)
                    str(self.array), self.array.tolist()
                except BaseException:
                    pass

        local = threading.local()
        local.array = work(1)
        builtins.kept = Late()            # goes when builtins do
        sys.kept = [Late(), local]
        knot = [Late()]
        knot.append(knot)
        model = nn.Linear(700, 1)
        step = nn.value_and_grad(model, lambda m: m(work(1)).sum())
        compiled = mx.compile(lambda a: step(model)[0] + a)
        mx.async_eval(compiled(mx.array(1.0)), model.parameters())
        exporter = mx.exporter('left_open.mlxfn', mx.exp)
        exporter(mx.array(1.0))
        rows, at = iter(mx.zeros((3, 3))), mx.zeros((3,)).at[1]
        context = mx.stream(mx.new_stream(mx.default_device()))
        context.__enter__()
        suspended = (mx.eval(work(1)) for _ in range(3))
        next(suspended)
        view = memoryview(mx.arange(10))
        atexit.register(lambda: mx.eval(work(1)))

        def thread():
            local.array = mx.new_thread_local_stream(mx.default_device()), work(1)
            ready.set()
            while True:
                mx.async_eval([mx.exp(local.array[1]) for _ in range(3)])

        for _ in range(2):
            ready = threading.Event()
            threading.Thread(target=thread, daemon=True).start()
            ready.wait()
        mx.async_eval(work())
        print('end')
    """
    with tempfile.TemporaryDirectory() as folder:
        done = run(device, code, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "Fatal" not in done.stderr, done.stderr


def test_exit_from_a_thread_and_within_a_transform(device):
    code = """
        import os, threading
        def leave(x):
            if {0}:
                os._exit(5)
            sys.exit(5)
        def inside():
            try:
                mx.vmap(mx.grad(lambda x: leave(x)))(mx.ones((3,)))
            except SystemExit:
                os._exit(5)
        mx.async_eval(work())
        {1}
        import time
        time.sleep(60)
    """
    for ways in ("False", "inside()"), ("True", "threading.Thread(target=inside).start()"):
        done = run(device, textwrap.dedent(code).format(*ways))
        assert done.returncode == 5, done.stderr


def test_interrupts_at_any_time(device):
    """A process that is interrupted again and again goes on, or ends with an exception."""
    code = """
        import os, signal, threading, time
        def interrupt():
            for _ in range(40):
                time.sleep(0.02)
                os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGUSR1)
        over = []
        signal.signal(signal.SIGUSR1, lambda *_: over.append(1))
        threading.Thread(target=interrupt, daemon=True).start()
        count = 0
        while not over:
            try:
                while not over:
                    f = mx.compile(lambda x: mx.vmap(mx.grad(lambda y: (y * y).sum()))(x))
                    mx.eval(f(mx.ones((4, 4))), work(1))
            except KeyboardInterrupt:
                count += 1
        print(count > 0, f(mx.ones((1, 1))).item(), work(1).shape)
    """
    done = run(device, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True 2.0 (700, 700)\n", done.stdout + done.stderr


# ---- work that failed ----


@pytest.mark.parametrize("is_async", [False, True])
def test_results_that_failed_are_never_numbers(is_async):
    x = mx.linalg.inv(mx.zeros((2, 2)), stream=mx.cpu)
    y = mx.add(x, 1, stream=mx.cpu)
    with pytest.raises(RuntimeError, match="LU factorization failed"):
        if is_async:
            mx.async_eval(x, y)
        x.tolist()
    for a in (x, mx.multiply(x, 0, stream=mx.cpu), y):
        try:
            values = a.flatten(stream=mx.cpu).tolist()
        except RuntimeError:
            continue
        assert all(v != v for v in values)
