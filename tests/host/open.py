"""The library in a Python process, through ctypes: opened, used in several threads, closed while one of
them lives on, opened again.

usage: open.py libmlxc.so
"""

import _ctypes
import ctypes
import sys
import threading

ROUNDS, THREADS, LENGTH = 4, 4, 1000
FLOAT32, GPU = 10, 1


class Handle(ctypes.Structure):
    """mlx_array, mlx_stream: a pointer in a struct."""

    _fields_ = [("ctx", ctypes.c_void_p)]


def open_library(path):
    lib = ctypes.CDLL(path)
    for name in ("mlx_array_new", "mlx_default_cpu_stream_new", "mlx_default_gpu_stream_new"):
        getattr(lib, name).restype = Handle
    lib.mlx_array_new_float32.restype = Handle
    lib.mlx_array_new_float32.argtypes = [ctypes.c_float]
    lib.mlx_array_data_float32.restype = ctypes.POINTER(ctypes.c_float)
    return lib


def must(status):
    if status:
        raise RuntimeError(f"status {status}")


def compute(lib, stream):
    ones, total = lib.mlx_array_new(), lib.mlx_array_new()
    three = lib.mlx_array_new_float32(3)
    must(lib.mlx_ones(ctypes.byref(ones), (ctypes.c_int * 1)(LENGTH), ctypes.c_size_t(1), FLOAT32,
                      stream))
    must(lib.mlx_add(ctypes.byref(total), ones, three, stream))
    must(lib.mlx_array_eval(total))
    if lib.mlx_array_data_float32(total)[:LENGTH] != [4.0] * LENGTH:
        raise RuntimeError("1 + 3 is not 4")
    for array in (ones, three, total):
        must(lib.mlx_array_free(array))


def compute_everywhere(lib):
    streams = [lib.mlx_default_cpu_stream_new()]
    n_gpus = ctypes.c_int()
    must(lib.mlx_device_count(ctypes.byref(n_gpus), GPU))
    if n_gpus.value:
        streams.append(lib.mlx_default_gpu_stream_new())
    for stream in streams:
        compute(lib, stream)
        must(lib.mlx_stream_free(stream))


def one_round(path):
    lib = open_library(path)
    failures, is_closed = [], threading.Event()

    def run(stays):
        try:
            compute_everywhere(lib)
        except Exception as failure:  # a thread's own would only be printed
            failures.append(failure)
        used.release()
        if stays:
            is_closed.wait()

    used = threading.Semaphore(0)
    threads = [threading.Thread(target=run, args=(i % 2,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    compute_everywhere(lib)
    for thread in threads:
        used.acquire()
    _ctypes.dlclose(lib._handle)
    is_closed.set()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


if len(sys.argv) != 2:
    sys.exit(__doc__)
for _ in range(ROUNDS):
    one_round(sys.argv[1])
