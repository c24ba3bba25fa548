#!/usr/bin/env python3
"""Runs mlx-lm's own tests and models on the package, beside the results of another package.

usage: mlx_lm_tests.py CHECKOUT RESULTS [-b REFERENCE] [-d cpu|gpu] [-j WORKERS] [-t SECONDS]
                       [-k PART] [-w tests|models] [-v]

CHECKOUT is a folder with a checkout of ml-explore/mlx-lm, which is run as it is. The interpreter
needs mlx-lm and what its tests import (datasets, lm-eval); mlx is found as Python finds it. RESULTS
is a folder that gets what the tests said (tests.json), and of every model that tests/test_models.py
builds the logits of a prompt and the tokens after it (models/*.npz), in float32 with weights that
depend on nothing but their names. A first run with MLX makes the REFERENCE of a second one with
this package. Tests that download models need a network, or HF_HOME with them.

  -b  the table says what differs from that folder
  -d  the device (cpu); only this package asks for it
  -j  how many files run at the same time (the number of processors)
  -t  seconds that a single test may take (300)
  -k  only files or tests, and models, whose name has this in it
  -w  only the tests, or only the models
  -v  shows why tests failed

The status is 1 if a test failed that passed in the reference, or a model's values differ.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zlib

import upstream_tests as upstream

PROMPT = [[0, 1, 5, 2, 7, 3]]
STEPS = 4
# Of the largest logit: what other orders of float32 sums make of a dozen layers.
CLOSE = 2e-3
# What models that the tests build in full size, but never evaluate, have here instead.
LARGE = 5e8
SMALL = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "head_dim": 32,
    "kv_channels": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 4,
    "vocab_size": 1000,
}


# ---- the tests ----


def run_tests(options):
    """{file: {test: [status, text]}}"""
    os.environ["MLX_DEFAULT_DEVICE"] = options.device
    paths = sorted((options.checkout / "tests").glob("test_*.py"))
    options.store = upstream.Store(None)
    files = [upstream.File(p.resolve(), options.device, {}, options) for p in paths]
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        files = [f for f in pool.map(upstream.File.run, files) if f.results]
    return {f.path.name: f.results for f in files}


def passed(result):
    return result is not None and result[0] in (upstream.PASSED, upstream.SKIPPED)


def compare_tests(found, reference, options):
    """Prints a row for each file; returns how many tests failed that passed in the reference."""
    print(
        "| file | passed | failed | failed there too | failed here alone |\n|---|--:|--:|--:|---|"
    )
    lost = 0
    for file, results in found.items():
        there = reference.get(file, {})
        bad = [n for n, r in results.items() if not passed(r)]
        alone = [n for n in bad if not reference or passed(there.get(n))]
        lost += len(alone)
        print(
            f"| {file} | {len(results) - len(bad)} | {len(bad)} | {len(bad) - len(alone)} "
            f"| {', '.join(n.split('.')[-1] for n in alone)} |"
        )
        for name in alone if options.verbose else []:
            print(f"---- {name}: {results[name][0]}\n{results[name][1]}")
    return lost


# ---- the models ----


def of_usable_size(model):
    from mlx.utils import tree_flatten

    if sum(p.size for _, p in tree_flatten(model.parameters())) < LARGE:
        return model
    fields = {f.name for f in dataclasses.fields(model.args)}
    args = dataclasses.replace(model.args, **{k: v for k, v in SMALL.items() if k in fields})
    return type(model)(args)


def fill(model):
    """Weights that depend on nothing but the names and shapes of parameters."""
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten

    weights = []
    for name, p in sorted(tree_flatten(model.parameters())):
        if not mx.issubdtype(p.dtype, mx.floating):
            weights.append((name, p))
            continue
        values = np.random.default_rng(zlib.crc32(name.encode())).random(p.shape, np.float32)
        scale = 0.2 if p.ndim < 2 else (12 / p.shape[-1]) ** 0.5
        # Scales stay about 1; what starts by chance has nothing to stay at.
        first = p.reshape(-1)[0] if p.ndim < 2 else 0
        start = np.float32(first.item() if p.ndim < 2 and mx.all(p == first).item() else 0)
        weights.append((name, mx.array(start + np.float32(scale) * (values - np.float32(0.5)))))
    model.load_weights(weights)
    model.eval()


def values_of(model):
    """Logits of a prompt without and with a cache, and the likeliest tokens after it."""
    import mlx.core as mx
    import numpy as np
    from mlx_lm.models.cache import make_prompt_cache

    fill(model)
    cache = make_prompt_cache(model)
    prompt = mx.array(PROMPT)
    whole, logits, tokens = model(prompt), model(prompt, cache=cache), []
    kept = [whole, logits]
    for _ in range(STEPS):
        token = mx.argmax(logits[:, -1, :], axis=-1)
        tokens.append(token.item())
        logits = model(token[:, None], cache=cache)
        kept.append(logits)
    kept = [np.array(k.astype(mx.float32)) for k in kept]
    return {"logits": np.concatenate([k.reshape(-1, k.shape[-1]) for k in kept]), "tokens": tokens}


def child(checkout, folder, part):
    """Writes KEY.npz of all models that the tests build and that are not there yet."""
    import unittest

    import numpy as np

    sys.path.insert(0, str(pathlib.Path(checkout).resolve() / "tests"))
    import test_models

    seen = collections.Counter()

    def keep(test, model, name, *_):
        path = pathlib.Path(folder) / f"{name}.{seen[name]}.npz"
        seen[name] += 1
        if part in name and not path.exists():
            path.touch()  # what ends the process is not tried again
            np.savez_compressed(path, **values_of(of_usable_size(model)))

    test_models.TestModels.model_test_runner = keep
    names = [
        n
        for n in unittest.defaultTestLoader.getTestCaseNames(test_models.TestModels)
        if "model_test_runner" in getattr(test_models.TestModels, n).__code__.co_names
    ]
    result = unittest.TestResult()
    unittest.TestSuite(map(test_models.TestModels, names)).run(result)
    for test, text in result.failures + result.errors:
        print(f"---- {test}\n{text}", flush=True)


def run_models(options):
    """Fills the folder models of the results; a process that crashes is followed by another."""
    folder = options.results / "models"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    env = dict(os.environ, MLX_DEFAULT_DEVICE=options.device)
    done = -1
    while done < len(list(folder.iterdir())):
        done = len(list(folder.iterdir()))
        command = [sys.executable, __file__, "--child", options.checkout, folder, options.part]
        if subprocess.run(command, env=env).returncode == 0:
            break


def read(path):
    import numpy as np

    return np.load(path) if path.exists() and path.stat().st_size else None


def compare_models(options):
    """Prints a row for each model, and returns how many differ."""
    import numpy as np

    print("| model | largest logit | largest difference | tokens |\n|---|--:|--:|---|")
    wrong = 0
    folders = [f / "models" for f in (options.results, options.beside)]
    names = {p.name for f in folders for p in f.glob("*.npz") if options.part in p.name}
    for name in sorted(names):
        here, there = (read(f / name) for f in folders)
        if here is None or there is None:
            wrong += here is None and there is not None
            print(
                f"| {name[:-4]} | | | {'no values' if here is None else 'none to compare with'} |"
            )
            continue
        largest = np.abs(there["logits"]).max()
        same = np.array_equal(here["tokens"], there["tokens"])
        alike = here["logits"].shape == there["logits"].shape
        differs = np.abs(here["logits"] - there["logits"]).max() if alike else np.inf
        ok = same and differs <= CLOSE * largest
        wrong += not ok
        print(
            f"| {name[:-4]} | {largest:.3g} | {differs:.2g} | {'same' if same else 'differ'}"
            f"{'' if ok else ' (wrong)'} |"
        )
    return wrong


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("-b", dest="beside", type=pathlib.Path)
    parser.add_argument("-d", dest="device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("-j", dest="workers", type=int, default=os.cpu_count())
    parser.add_argument("-t", dest="seconds", type=float, default=300)
    parser.add_argument("-k", dest="part", default="")
    parser.add_argument("-w", dest="what", default="", choices=("tests", "models"))
    parser.add_argument("-v", dest="verbose", action="store_true")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    bad = 0
    if options.what != "models":
        results = run_tests(options)
        (options.results / "tests.json").write_text(json.dumps(results, indent=1))
        path = options.beside and options.beside / "tests.json"
        bad += compare_tests(results, json.loads(path.read_text()) if path else {}, options)
    if options.what != "tests":
        run_models(options)
        bad += compare_models(options) if options.beside else 0
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
