#!/usr/bin/env python3
"""Runs MLX's own Python tests against the package, and writes what passed as a table.

usage: upstream_tests.py CHECKOUT [-d cpu|gpu] [-j WORKERS] [-t SECONDS] [-k PART] [-o TABLE.md] [-v]

CHECKOUT is a folder with a checkout of ml-explore/mlx; its python/tests are run as they are. The
package is found as Python finds it: set PYTHONPATH=build/python for that of a build folder.

  -d  the device, as DEVICE says to the tests (cpu)
  -j  how many files run at the same time (the number of processors)
  -t  seconds that a single test may take (120)
  -k  only files or tests whose name has this in it
  -o  where the table goes
  -v  shows why tests failed

A test that crashes or takes too long fails, and the rest of its file goes on in a new process. What
cannot pass is a row of tools/upstream_excluded.txt, with its reason. The status is 1 if any other test
failed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

EXCLUDED = pathlib.Path(__file__).with_name("upstream_excluded.txt")
PASSED, SKIPPED = "passed", "skipped"


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
            self.write(test, "failed", f"{subtest}\n{self._exc_info_to_string(err, test)}")


def name_of(test):
    return ".".join(test.id().split(".")[-2:])


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

class File:
    """The tests of a file and what became of them: {name: (status, text)}."""

    def __init__(self, path, options):
        self.path, self.options, self.results = path, options, {}
        # Tests run in their folder, where relative paths would lead elsewhere.
        paths = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        self.env = dict(os.environ, DEVICE=options.device, PYTHONPATH=os.pathsep.join(paths))

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
            while names:
                self.run_until_trouble(names)
                names = [n for n in names if n not in self.results]
        return self

    def last_errors(self):
        self.errors.seek(0)
        return self.errors.read()[-2000:]

    def run_until_trouble(self, names):
        """Runs tests until all are done, or one ends the process or lasts too long."""
        process = self.start(names)
        running, late = None, threading.Event()

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
                running = name
            elif self.results.get(name, (PASSED,))[0] in (PASSED, SKIPPED):
                self.results[name] = (status, text)
        timer.cancel()
        code = process.wait()
        if running and running not in self.results:
            what = "too slow" if late.is_set() else f"ended the process with {code}"
            self.results[running] = ("error", what)
        elif running is None or code:  # nothing was run: do not try again
            for name in names:
                self.results.setdefault(name, ("error", "not run: " + self.last_errors()))


def excluded():
    """{"file test": reason}; a test may be * for all of a file."""
    rows = {}
    for line in EXCLUDED.read_text().splitlines() if EXCLUDED.exists() else []:
        if line and not line.startswith("#"):
            file, test, reason = line.split(None, 2)
            rows[file, test] = reason
    return rows


def count(file, rows):
    """(passed, skipped, excluded, [failed names])"""
    numbers, failed = [0, 0, 0], []
    for name, (status, _) in file.results.items():
        if status in (PASSED, SKIPPED):
            numbers[status == SKIPPED] += 1
        elif (file.path.name, name) in rows or (file.path.name, "*") in rows:
            numbers[2] += 1
        else:
            failed.append(name)
    return (*numbers, failed)


def write_table(files, rows, options):
    lines = [f"| file | passed | failed | excluded | skipped by the test | DEVICE={options.device}: failed |",
             "|---|--:|--:|--:|--:|---|"]
    totals = [0, 0, 0, 0]
    for f in files:
        passed, skipped, out, failed = count(f, rows)
        numbers = [passed, len(failed), out, skipped]
        totals = [a + b for a, b in zip(totals, numbers)]
        names = ", ".join(n.split(".")[-1] for n in failed[:40])
        lines.append(f"| {f.path.name} | {' | '.join(map(str, numbers))} | {names} |")
    lines.append(f"| all | {' | '.join(map(str, totals))} | |")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(text)
    return totals[1]


def main():
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("-d", dest="device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("-j", dest="workers", type=int, default=os.cpu_count())
    parser.add_argument("-t", dest="seconds", type=float, default=120)
    parser.add_argument("-k", dest="part", default="")
    parser.add_argument("-o", dest="out")
    parser.add_argument("-v", dest="verbose", action="store_true")
    options = parser.parse_args()
    paths = sorted((options.checkout / "python" / "tests").glob("test_*.py"))
    files = [File(p.resolve(), options) for p in paths]
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        files = [f for f in pool.map(File.run, files) if f.results]
    rows = excluded()
    for f in files if options.verbose else []:
        for name in count(f, rows)[3]:
            print(f"---- {f.path.name} {name}: {f.results[name][0]}\n{f.results[name][1]}")
    return 1 if write_table(files, rows, options) or not files else 0


if __name__ == "__main__":
    sys.exit(main())
