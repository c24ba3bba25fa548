"""Every function of the package that computes is drawn, or it is said here why not."""

import mlx.core as mx
import run
from table import ROWS

NOT_DRAWN = {
    "transformations and files of functions: modes of run.py, exchange.py, tests/python": """
        async_eval checkpoint compile disable_compile enable_compile eval export_function
        export_to_dot exporter grad import_function jvp value_and_grad vjp vmap""",
    "devices, streams and memory are the machine's": """
        clear_cache clear_streams default_device default_stream device_count device_info
        get_active_memory get_array_buffer_size get_cache_memory get_memory_limit
        get_peak_memory is_available new_stream new_thread_local_stream new_thread_unsafe_stream
        reset_peak_memory set_cache_limit set_default_device set_default_stream set_memory_limit
        set_wired_limit stream synchronize""",
    "files and other packages: tests/python": """
        from_dlpack load save save_gguf save_safetensors savez savez_compressed""",
    "how arrays are printed: tests/python": "get_printoptions printoptions set_printoptions",
    "state of the process": "random.seed random.state",
    "kernels of the caller: tests/python": """
        fast.cuda_kernel fast.metal_kernel fast.precompiled_cuda_kernel fast.vulkan_kernel""",
}
MODULES = {"": mx, "fast.": mx.fast, "fft.": mx.fft, "linalg.": mx.linalg, "random.": mx.random}


def test_every_function_has_a_row():
    names = {
        prefix + name
        for prefix, module in MODULES.items()
        for name in dir(module)
        if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
    }
    reasons = {name for text in NOT_DRAWN.values() for name in text.split()}
    assert reasons <= names | {"random.state"}
    assert run.ROWS is ROWS
    public = {name for name in names if not name.rpartition(".")[2].startswith("_")}
    assert sorted(public - set(ROWS) - reasons) == []
