#!/usr/bin/env python3
"""Runs MLX's own Python tests against the package, and writes what passed as a table.

usage: upstream_tests.py CHECKOUT [-d cpu|gpu|all] [-j WORKERS] [-t SECONDS] [-k PART] [-o FILE]
                         [-r RESULTS] [-v]

CHECKOUT is a folder with a checkout of ml-explore/mlx; its python/tests are run as they are. The
package is found as Python finds it: set PYTHONPATH=build/python for that of a build folder.

  -d  the device, as DEVICE says to the tests (cpu); all: one after the other
  -j  how many files run at the same time (the number of processors)
  -t  seconds that a single test may take (120)
  -k  only files or tests whose name has this in it
  -o  where the report goes: docs/upstream.md is one of -d all
  -r  keeps results in this file; tests that passed there or skipped themselves are not run again
  -v  shows why tests failed, and says when a file is done

A test that crashes or takes too long fails, and the rest of its file goes on in a new process. What
cannot pass is a row of tools/upstream_excluded.txt, with its reason; a row that names a subtest
leaves the others in. The status is 1 if anything else failed. Rows whose test passed are named at
the end.
"""

import argparse
import collections
import concurrent.futures
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

EXCLUDED = pathlib.Path(__file__).with_name("upstream_excluded.txt")
PASSED, SKIPPED, OUT = "passed", "skipped", "excluded"
DEVICES = {"cpu": ["cpu"], "gpu": ["gpu"], "all": ["cpu", "gpu"]}
# What tests use where it is there.
PACKAGES = ("numpy", "ml_dtypes", "psutil", "torch", "tensorflow", "jax")


# ---- the process that runs tests of one file ----

class Reporter(unittest.TestResult):
    """Writes a line of JSON before and after every test."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def write(self, test, status, text=""):
        print(json.dumps([name_of(test), status, text]), file=self.out, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.write(test, "started")

    def addSuccess(self, test):
        self.write(test, PASSED)

    def addSkip(self, test, reason):
        self.write(test, SKIPPED, reason)

    def addFailure(self, test, err):
        self.write(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.write(test, "error", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.write(subtest, "failed", self._exc_info_to_string(err, test))


def name_of(test):
    """Class.test, and for a subtest what it is called with: Class.test(kL=8,op='exp')."""
    whole = getattr(test, "test_case", test)
    name = ".".join(whole.id().split(".")[-2:])
    params = getattr(test, "params", {})
    return name + ("(" + ",".join(f"{k}={v!r}" for k, v in params.items()) + ")" if params else "")


def tests_of(suite):
    for t in suite:
        yield from tests_of(t) if isinstance(t, unittest.TestSuite) else [t]


def child(path, names):
    """Runs the tests of a file that are named; lists them if none is."""
    path = pathlib.Path(path)
    sys.path.insert(0, str(path.parent))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print is no report
    tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromName(path.stem)))
    if not names:
        print(json.dumps([name_of(t) for t in tests]), file=out, flush=True)
    wanted = set(names)
    reporter = Reporter(out)
    unittest.TestSuite(t for t in tests if name_of(t) in wanted).run(reporter)
    out.flush()
    os._exit(0)  # the end of the process is not what is tested here


# ---- the process that starts those ----

class Store:
    """Results of earlier runs in a file of JSON: {"DEVICE FILE": {test: [status, text]}}."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.known = json.loads(path.read_text()) if path and path.exists() else {}

    def get(self, key):
        return {n: r for n, r in self.known.get(key, {}).items() if r[0] in (PASSED, SKIPPED)}

    def put(self, key, results):
        with self.lock:
            self.known[key] = results
            if self.path:
                self.path.write_text(json.dumps(self.known, indent=0))


class File:
    """The tests of a file and what became of them: {name: (status, text)}."""

    def __init__(self, path, device, rows, options):
        self.path, self.device, self.options, self.results = path, device, options, {}
        self.key = f"{device} {path.name}"
        self.rows = {test: reason for (file, test), reason in rows.items() if file == path.name}
        # Tests run in their folder, where relative paths would lead elsewhere.
        paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        paths = os.pathsep.join(map(os.path.abspath, paths))
        self.env = dict(os.environ, DEVICE=device, PYTHONPATH=paths)

    def start(self, names):
        return subprocess.Popen([sys.executable, __file__, "--child", str(self.path), *names],
                                stdout=subprocess.PIPE, stderr=self.errors, env=self.env,
                                cwd=self.path.parent, text=True)

    def run(self):
        with tempfile.TemporaryFile("w+") as self.errors:
            listing = self.start([])
            text = listing.communicate()[0]
            names = json.loads(text) if text and listing.returncode == 0 else None
            if names is None or any("_FailedTest" in n for n in names):
                self.results = {"(import)": ("error", self.last_errors())}
                return self
            names = [n for n in names if self.options.part in f"{self.path.name} {n}"]
            kept = self.options.store.get(self.key)
            self.results = {n: kept[n] for n in names if n in kept}
            while names := [n for n in names if n not in self.results]:
                self.run_until_trouble(names)
        if not self.options.part:
            self.options.store.put(self.key, self.results)
        if self.options.verbose:
            print(f"{self.device} {self.path.name}: {dict(self.numbers())}", flush=True)
        return self

    def note(self, name, status, text):
        """The result of a test, or of a subtest that failed: the worst of a test counts."""
        test = name.split("(")[0]
        if status not in (PASSED, SKIPPED):
            reason = self.rows.get(name, self.rows.get(test, self.rows.get("*")))
            status, text = (OUT, reason) if reason else (status, f"{name}\n{text}")
        if self.results.get(test, (PASSED,))[0] in (PASSED, SKIPPED, OUT):
            self.results[test] = (status, text)

    def numbers(self):
        """How many tests passed, failed, are excluded and were skipped."""
        kinds = collections.Counter(status for status, _ in self.results.values())
        numbers = {k: kinds.pop(k, 0) for k in (PASSED, OUT, SKIPPED)}
        return {PASSED: numbers.pop(PASSED), "failed": kinds.total(), **numbers}

    def named(self, *statuses):
        return {n: text for n, (status, text) in self.results.items() if status in statuses}

    def failed(self):
        fine = (PASSED, OUT, SKIPPED)
        return {n: text for n, (status, text) in self.results.items() if status not in fine}

    def last_errors(self):
        self.errors.seek(0)
        return self.errors.read()[-2000:]

    def run_until_trouble(self, names):
        """Runs tests until all are done, or one ends the process or lasts too long."""
        process = self.start(names)
        running, begun, late = None, False, threading.Event()

        def kill():
            late.set()
            process.kill()

        timer = threading.Timer(self.options.seconds, kill)
        timer.start()
        for line in process.stdout:
            name, status, text = json.loads(line)
            timer.cancel()
            timer = threading.Timer(self.options.seconds, kill)
            timer.start()
            if status == "started":
                running, begun = name, True
                continue
            self.note(name, status, text)
            running = None if name == running else running
        timer.cancel()
        code = process.wait()
        if running and (code or running not in self.results):
            what = "too slow" if late.is_set() else f"ended the process with {code}"
            self.note(running, "error", what)
        elif not begun:  # do not try again
            for name in names:
                self.results.setdefault(name, ("error", "not run: " + self.last_errors()))


def excluded():
    """{(file, test): reason}; a test may be * for all of a file, or a subtest."""
    rows = {}
    for line in EXCLUDED.read_text().splitlines() if EXCLUDED.exists() else []:
        if line and not line.startswith("#"):
            file, test, reason = line.split(None, 2)
            rows[file, test] = reason
    return rows


# ---- the report ----

def version_of(checkout):
    """That of MLX's sources, and their commit where git knows it."""
    text = (checkout / "mlx" / "version.h").read_text()
    version = ".".join(re.findall(r"#define MLX_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))
    git = subprocess.run(["git", "-C", checkout, "rev-parse", "--short", "HEAD"],
                         capture_output=True, text=True)
    return f"{version}, commit {git.stdout.strip()}" if git.returncode == 0 else version


def devices_of(runs):
    """What the devices are called: the package says it."""
    code = ("import mlx.core as mx\nfor d in (mx.cpu, mx.gpu):\n"
            "    print(mx.device_info(d).get('device_name', '') if mx.is_available(d) else '')")
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    names = dict(zip(DEVICES["all"], names.splitlines()))
    return [f"{d} ({names[d]})" if names.get(d) else d for d in runs]


def packages():
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def table(runs):
    kinds = (PASSED, "failed", OUT, SKIPPED)
    lines = ["| file | " + " | ".join(f"{d}: {k}" for d in runs for k in kinds) + " |",
             "|---|" + "--:|" * len(kinds) * len(runs)]
    names = sorted({f.path.name for files in runs.values() for f in files})
    totals = collections.Counter()
    for name in names:
        cells = []
        for d, files in runs.items():
            numbers = next((f.numbers() for f in files if f.path.name == name), {})
            totals.update({(d, k): n for k, n in numbers.items()})
            cells += [str(numbers.get(k, 0)) for k in kinds]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    cells = [str(totals[d, k]) for d in runs for k in kinds]
    return [*lines, "| all | " + " | ".join(cells) + " |"]


def by_test(runs, pick):
    """| file | test | devices | text | for what pick finds in files."""
    found = {}
    for d, files in runs.items():
        for f in files:
            for name, text in pick(f).items():
                found.setdefault((f.path.name, name.split(".")[-1], text), []).append(d)
    lines = [f"| {file} | {test} | {', '.join(ds)} | {text} |"
             for (file, test, text), ds in sorted(found.items())]
    head = ["| file | test | device | reason |", "|---|---|---|---|"]
    return [*head, *lines] if lines else ["None."]


def skips(runs):
    """How many tests skipped themselves, for each of their reasons."""
    numbers = collections.Counter(
        (text, d) for d, files in runs.items() for f in files for text in f.named(SKIPPED).values())
    reasons = sorted({text for text, _ in numbers})
    return ["| what the test says | " + " | ".join(runs) + " |", "|---|" + "--:|" * len(runs),
            *(f"| {r} | " + " | ".join(str(numbers[r, d]) for d in runs) + " |" for r in reasons)]


def report(runs, checkout):
    def last_line(f):
        return {n: t.strip().splitlines()[-1] for n, t in f.failed().items()}

    device = "all" if len(runs) > 1 else next(iter(runs))
    return "\n".join([
        "# MLX's own Python tests", "",
        f"Written by `tools/upstream_tests.py CHECKOUT -d {device} -o FILE`. A test counts as one,",
        "whatever number of subtests it has.", "",
        f"- Tests: python/tests of ml-explore/mlx {version_of(checkout)}",
        f"- Devices: {', '.join(devices_of(runs))}",
        f"- Packages that tests use where they are there: {packages()}", "",
        *table(runs), "",
        "## Failed", "", *by_test(runs, last_line), "",
        "## Excluded", "", "Failures with a row in `tools/upstream_excluded.txt`.", "",
        *by_test(runs, lambda f: f.named(OUT)), "",
        "## Skipped by the tests themselves", "", *skips(runs), ""])


def unused(runs, rows):
    """Rows of tests that passed, or that are not there, on all devices."""
    used = {(f.path.name, t) for files in runs.values() for f in files for t in (*f.named(OUT), "*")
            if f.named(OUT)}
    return [f"{file} {test}" for file, test in rows if (file, test.split("(")[0]) not in used]


def run_all(device, rows, options):
    paths = sorted((options.checkout / "python" / "tests").glob("test_*.py"))
    files = [File(p.resolve(), device, rows, options) for p in paths]
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        return [f for f in pool.map(File.run, files) if f.results]


def main():
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("-d", dest="device", default="cpu", choices=DEVICES)
    parser.add_argument("-j", dest="workers", type=int, default=os.cpu_count())
    parser.add_argument("-t", dest="seconds", type=float, default=120)
    parser.add_argument("-k", dest="part", default="")
    parser.add_argument("-o", dest="out", type=pathlib.Path)
    parser.add_argument("-r", dest="store", type=pathlib.Path)
    parser.add_argument("-v", dest="verbose", action="store_true")
    options = parser.parse_args()
    options.store = Store(options.store)
    rows = excluded()
    runs = {d: run_all(d, rows, options) for d in DEVICES[options.device]}
    for d, files in runs.items() if options.verbose else []:
        for f in files:
            for text in f.failed().values():
                print(f"---- {d} {f.path.name} {text}")
    text = report(runs, options.checkout)
    print(text)
    if options.out:
        options.out.write_text(text)
    for row in unused(runs, rows) if not options.part else []:
        print(f"not needed: {row}")
    files = [f for files in runs.values() for f in files]
    return 1 if not files or any(f.failed() for f in files) else 0


if __name__ == "__main__":
    sys.exit(main())
