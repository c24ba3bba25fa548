#!/usr/bin/env python3
"""Writes calls of every public function with absent, empty and aliased arguments.

usage: null_calls.py folder-of-public-headers > null_calls.inc

For each function up to three C functions: null_* passes NULL and empty handles everywhere, empty_*
passes valid out-parameters but empty inputs, alias_* passes one live handle as result and as every
input of its type. tests/api/handles.c runs them and says what must hold.
"""

import pathlib
import re
import sys

HANDLES = {  # type: (how to free one, how to make a live one)
    "mlx_array": ("mlx_array_free", "live_array()"),
    "mlx_string": ("mlx_string_free", 'mlx_string_new_data("text")'),
    "mlx_device": ("mlx_device_free", "mlx_device_new_type(MLX_CPU, 0)"),
    "mlx_device_info": ("mlx_device_info_free", "live_device_info()"),
    "mlx_stream": ("mlx_stream_free", "mlx_default_cpu_stream_new()"),
    "mlx_node_namer": ("mlx_node_namer_free", "mlx_node_namer_new()"),
    "mlx_vector_array": ("mlx_vector_array_free", "live_vector_array()"),
    "mlx_vector_vector_array": ("mlx_vector_vector_array_free", "live_vector_vector_array()"),
    "mlx_vector_int": ("mlx_vector_int_free", "mlx_vector_int_new_value(0)"),
    "mlx_vector_string": ("mlx_vector_string_free", 'mlx_vector_string_new_value("text")'),
    "mlx_io_reader": ("mlx_io_reader_free", "live_reader()"),
    "mlx_io_writer": ("mlx_io_writer_free", "live_writer()"),
    "mlx_io_gguf": ("mlx_io_gguf_free", "mlx_io_gguf_new()"),
    "mlx_map_string_to_array": ("mlx_map_string_to_array_free", "live_map_array()"),
    "mlx_map_string_to_string": ("mlx_map_string_to_string_free", "live_map_string()"),
    "mlx_distributed_group": ("mlx_distributed_group_free", "live_group()"),
    "mlx_closure": ("mlx_closure_free", "live_closure()"),
    "mlx_closure_kwargs": ("mlx_closure_kwargs_free", "live_closure_kwargs()"),
    "mlx_closure_value_and_grad": ("mlx_closure_value_and_grad_free", "live_closure_grad()"),
    "mlx_closure_custom": ("mlx_closure_custom_free", "live_closure_custom()"),
    "mlx_closure_custom_jvp": ("mlx_closure_custom_jvp_free", "live_closure_custom_jvp()"),
    "mlx_closure_custom_vmap": ("mlx_closure_custom_vmap_free", "live_closure_custom_vmap()"),
    "mlx_function_exporter": ("mlx_function_exporter_free", "live_exporter()"),
    "mlx_imported_function": ("mlx_imported_function_free", "live_imported()"),
    "mlx_fast_metal_kernel_config": ("mlx_fast_metal_kernel_config_free", "live_metal_config()"),
    "mlx_fast_cuda_kernel_config": ("mlx_fast_cuda_kernel_config_free",
                                    "mlx_fast_cuda_kernel_config_new()"),
    "mlx_fast_metal_kernel": ("mlx_fast_metal_kernel_free", "live_metal_kernel()"),
    "mlx_fast_vulkan_kernel_config": ("mlx_fast_vulkan_kernel_config_free",
                                      "mlx_fast_vulkan_kernel_config_new()"),
    "mlx_fast_vulkan_kernel": ("mlx_fast_vulkan_kernel_free", "live_vulkan_kernel()"),
    "mlx_fast_cuda_kernel": ("mlx_fast_cuda_kernel_free", None),  # there is none
    "mlx_map_string_to_array_iterator": ("mlx_map_string_to_array_iterator_free", None),
    "mlx_map_string_to_string_iterator": ("mlx_map_string_to_string_iterator_free", None),
}
# Arguments that may be absent, beyond streams.
OPTIONAL = {("mlx_clip", "a_min"), ("mlx_clip", "a_max"), ("mlx_print_graph", "namer"),
            ("mlx_export_to_dot", "namer"), ("mlx_setting_set", "value"),
            ("mlx_quantize", "global_scale"), ("mlx_dequantize", "global_scale"),
            ("mlx_dequantize", "biases"), ("mlx_quantized_matmul", "biases"),
            ("mlx_gather_qmm", "biases"), ("mlx_gather_qmm", "lhs_indices"),
            ("mlx_gather_qmm", "rhs_indices"), ("mlx_gather_mm", "lhs_indices"),
            ("mlx_gather_mm", "rhs_indices"), ("mlx_custom_function", "fun_vjp"),
            ("mlx_gather_qmm_global_scale", "biases"),
            ("mlx_gather_qmm_global_scale", "lhs_indices"),
            ("mlx_gather_qmm_global_scale", "rhs_indices"),
            ("mlx_gather_qmm_global_scale", "global_scale"), ("mlx_unique", "fill_value"),
            ("mlx_fast_gated_delta_update", "initial_state"),
            ("mlx_fast_gated_delta_update", "mask"), ("mlx_fft_stft", "window"),
            ("mlx_fft_istft", "window"), ("mlx_fft_stft", "onesided"),
            ("mlx_fft_istft", "onesided"),
            ("mlx_custom_function", "fun_jvp"), ("mlx_custom_function", "fun_vmap")}
OPTIONAL_RANDOM = {"key", "loc", "scale"}  # of distributions
OPTIONAL_FAST = {"weight", "bias", "freqs", "mask_arr", "sinks"}  # of fused ops
OPTIONAL_DISTRIBUTED = {"bk", "S"}  # and the group of an op
# return a value that happens to be an int
NO_STATUS = {"mlx_array_dim", "mlx_distributed_group_rank", "mlx_distributed_group_size"}
SKIP = {"mlx_set_error_handler", "_mlx_error"}  # variadic, or what the test itself installs

PROTOTYPE = re.compile(r"^((?:const )?\w+(?: \*)?) ?(\w+)\(([^;]*)\);$")
PARAM = re.compile(r"^((?:const )?\w+) ?(\**) ?(?:const )?(\w+)$")


def prototypes(folder):
    for header in sorted(pathlib.Path(folder).glob("*.h")):
        text = header.read_text()
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"#ifdef HAS_\w+.*?#endif", " ", text, flags=re.S)
        text = re.sub(r"\btypedef\b.*?}\s*\w+;", " ", text, flags=re.S)
        text = "\n".join(l for l in text.splitlines() if not l.startswith("#"))
        for statement in re.sub(r"\s+", " ", text).replace("; ", ";\n").splitlines():
            statement = re.sub(r"^(?:__attribute__\(\(.*?\)\)\)? ?)", "", statement.strip())
            statement = re.sub(r'^extern "C" \{ ', "", statement)
            m = PROTOTYPE.match(statement)
            if m and "mlx_" in m.group(2) and m.group(2) not in SKIP:
                yield m.groups()


class Param:
    def __init__(self, function, text):
        if "(*" in text:  # a callback
            self.type, self.stars, self.name = "callback", "*", "dtor"
        else:
            self.type, self.stars, self.name = PARAM.match(text.strip()).groups()
        self.const = self.type.startswith("const ")
        self.base = self.type.removeprefix("const ")
        self.is_handle = self.base in HANDLES and not self.stars
        self.is_out = bool(self.stars) and not self.const and self.base not in ("callback", "void", "FILE")
        self.optional = (
            self.base == "mlx_stream" and self.name in ("s", "stream")
            or (function, self.name) in OPTIONAL
            or function.startswith("mlx_random_") and "split" not in function
            and self.name in OPTIONAL_RANDOM
            or function.startswith("mlx_fast_") and self.name in OPTIONAL_FAST
            or function.startswith("mlx_distributed_") and (
                self.name in OPTIONAL_DISTRIBUTED
                or self.name == "group" and not function.startswith("mlx_distributed_group_"))
        )

    def is_list(self, params):
        """A pointer that comes with a count."""
        count = "size" if self.name == "data" else self.name + "_num"
        return bool(self.stars) and any(p.name == count for p in params)


def null_argument(p):
    if p.stars:
        return "NULL"
    return "(%s){ 0 }" % p.base


def empty_argument(p, params, result):
    """Valid places for results, nothing for inputs, counts that promise entries."""
    if p is result or (p.is_out and p.base in HANDLES):
        return "&" + p.name
    if p.is_out:
        return "(void *)&scratch"
    if p.base == "FILE":
        return "sink"
    if p.base == "char" and p.stars == "*":
        return '"text"'
    if any(q.is_list([p]) for q in params):
        return "2"
    return null_argument(p)


def alias_argument(p, result):
    if p is result or (p.is_out and p.base in HANDLES):
        return "&" + p.name
    if p.is_out:
        return "(void *)&scratch"
    if p.is_handle and p.base == result.base:
        return result.name
    if p.is_handle and not p.optional and HANDLES[p.base][1]:
        return "other_" + p.name
    if p.base == "char" and p.stars == "*":
        return '"constant"'
    if p.base == "mlx_dtype":
        return "MLX_FLOAT32"
    return null_argument(p)


def body(name, lines):
    return "static void %s(struct outcome *o)\n{\n%s}\n" % (name, "".join("    %s\n" % l for l in lines))


def outcome(returns, name, arguments):
    call = "%s(%s)" % (name, ", ".join(arguments))
    if returns == "int" and name not in NO_STATUS:
        return ["o->status = %s;" % call, "o->has_status = true;"]
    if returns in HANDLES:
        free = HANDLES[returns][0]
        return ["%s made = %s;" % (returns, call), "o->made = made.ctx != NULL;", "%s(made);" % free]
    return [call + ";", "(void)o;"] if returns == "void" else ["o->made = %s != 0;" % call]


def split_parameters(text):
    """At the commas outside of brackets: callbacks have parameters of their own."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def emit(returns, name, text):
    params = [] if text == "void" else [Param(name, t) for t in split_parameters(text)]
    for p in params:
        p.is_out = p.is_out and not p.is_list(params)
    result = next((p for p in params if p.is_out and p.base in HANDLES), None)
    handles = [p for p in params if p.is_handle and not p.optional]
    pointers = [p for p in params if p.stars and not p.optional]
    frees = name.endswith("_free")
    rows = {"null": "NULL", "empty": "NULL", "alias": "NULL"}

    print(body("null_" + name, outcome(returns, name, [null_argument(p) for p in params])))
    rows["null"] = "null_" + name
    lists = [p for p in params if p.is_list(params)]
    if not frees and params:
        outs = [p for p in params if p.is_out and p.base in HANDLES]
        lines = ["uint64_t scratch[4] = { 0 };", "(void)scratch;"]
        lines += ["%s %s = { 0 };" % (p.base, p.name) for p in outs]
        lines += outcome(returns, name, [empty_argument(p, params, result) for p in params])
        lines += ["%s(%s);" % (HANDLES[p.base][0], p.name) for p in outs]
        print(body("empty_" + name, lines))
        rows["empty"] = "empty_" + name
    if result and returns == "int" and HANDLES[result.base][1]:
        others = [p for p in params if p.is_handle and p.base != result.base and not p.optional
                  and HANDLES[p.base][1]]
        more = [p for p in params if p.is_out and p.base in HANDLES and p is not result]
        lines = ["uint64_t scratch[4] = { 0 };", "(void)scratch;"]
        lines += ["%s %s = %s;" % (result.base, result.name, HANDLES[result.base][1])]
        lines += ["%s %s = { 0 };" % (p.base, p.name) for p in more]
        lines += ["%s other_%s = %s;" % (p.base, p.name, HANDLES[p.base][1]) for p in others]
        lines += ["void *box = %s.ctx;" % result.name]
        lines += outcome(returns, name, [alias_argument(p, result) for p in params])
        lines += ["o->kept_box = %s.ctx == box;" % result.name]
        lines += ["%s(%s);" % (HANDLES[p.base][0], p.name) for p in [result] + more]
        lines += ["%s(other_%s);" % (HANDLES[p.base][0], p.name) for p in others]
        print(body("alias_" + name, lines))
        rows["alias"] = "alias_" + name
    null_fails = not frees and bool(handles or [p for p in pointers if not p.is_list(params)])
    empty_fails = not frees and bool(handles or lists)
    return '    { "%s", %s, %s, %s, %s, %s },' % (
        name, rows["null"], rows["empty"], rows["alias"],
        str(null_fails).lower(), str(empty_fails).lower())


def main():
    print("/* Written by tests/gen/null_calls.py. */")
    table = [emit(*p) for p in prototypes(sys.argv[1])]
    print("static const struct probe probes[] = {")
    print("\n".join(table))
    print("};")


main()
