#!/usr/bin/env python3
"""Makes the functions of the Python module out of the tables in python/functions.

usage: gen_python.py c TABLE OUT.c HEADERS SOURCES   the functions of one table
       gen_python.py index OUT.c OUT.h HEADERS SOURCES TABLES...   what ties the tables together
       gen_python.py stubs FOLDER CLASSES.pyi HEADERS SOURCES TABLES...   signatures for type checkers

A row is a signature, the call behind it and a description:

    sum(array: array, /, axis: axes? = None, keepdims: bool = False, *, stream)
        axis ? mlx_sum_axes(array, axis, keepdims) : mlx_sum(array, keepdims)
        The sum of the elements.

The types of parameters are rows of KINDS. "axis ?" asks whether it was given and not None. The stream
comes last in a call by itself. In place of a call: "hand NAME", a C function hand_NAME(struct frame
*) that gets the converted arguments, or "raw NAME", one that parses them itself, or in a class "as
NAME", the call of that function. Rows before "class array" belong to the module that a line "module
mlx.core" names. "alias NEW = OLD" gives a function another name. A row whose C function is
neither declared in HEADERS nor defined in SOURCES is left out, and said so.
"""

import pathlib
import re
import sys

# name in the tables: (C kind, what calls pass, type in stubs)
KINDS = {
    "array": ("ARRAY", "{v}.array", "array"),
    "operand": ("OPERAND", "{v}.array", "scalar | array"),
    "weak": ("WEAK", "{v}.array", "scalar | array"),
    "key": ("KEY", "{v}.array", "array"),
    "arrays": ("ARRAYS", "{v}.arrays", "Sequence[array]"),
    "int": ("INT", "{v}.i", "int"),
    "size": ("SIZE", "{v}.size", "int"),
    "float": ("FLOAT", "{v}.f", "float"),
    "bool": ("BOOL", "{v}.b", "bool"),
    "str": ("STR", "{v}.text", "str"),
    "dtype": ("DTYPE", "{v}.dtype", "Dtype"),
    "axes": ("AXES", "{v}.ints.v, {v}.ints.n", "int | Sequence[int]"),
    "ints": ("INTS", "{v}.ints.v, {v}.ints.n", "Sequence[int]"),
    "int2": ("INT2", "{v}.tuple[0], {v}.tuple[1]", "int | tuple[int, int]"),
    "int3": ("INT3", "{v}.tuple[0], {v}.tuple[1], {v}.tuple[2]", "int | tuple[int, int, int]"),
    "stream": ("STREAM", "{v}.stream", "StreamOrDevice"),
    "object": ("OBJECT", None, "object"),
}
DEFAULT_FIELD = {"INT": "i", "SIZE": "size", "FLOAT": "f", "BOOL": "b", "STR": "text", "DTYPE": "dtype",
                 "INT2": "tuple", "INT3": "tuple"}
PROTOTYPE = re.compile(r"^int (mlx_\w+)\(([^;]*)\);$")
# What a prototype hands over first, and what becomes of it.
RESULTS = {"mlx_vector_array": "list", "size_t": "int", "bool": "bool", "int": "int"}


def fail(text):
    sys.exit(f"gen_python.py: {text}")


def prototypes(folder, sources=None):
    """{function: [types of parameters]} of the public headers; and {function: []} of those by hand."""
    found = {}
    for source in sorted(pathlib.Path(sources).glob("*.c")) if sources else []:
        found |= {f: [] for f in re.findall(r"^PyObject \*(\w+)\(", source.read_text(), flags=re.M)}
    for header in sorted(pathlib.Path(folder).glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
        text = "\n".join(l for l in text.splitlines() if not l.startswith("#"))
        for statement in re.sub(r"\s+", " ", text).replace("; ", ";\n").splitlines():
            statement = statement.strip().removeprefix('extern "C" { ')
            if m := PROTOTYPE.match(statement):
                params = [re.sub(r"\w+$", "", p).replace("const ", "").replace(" ", "")
                          for p in m[2].split(", ")]
                found[m[1]] = [] if params == [""] else params
    return found


class Param:
    def __init__(self, text, where):
        self.where = where
        if text == "stream":
            text = "stream: stream? = None"
        m = re.fullmatch(r"(\w+)(?:: (\w+)(\?)?(?: = (.+))?)?", text)
        if not m:
            fail(f"{where}: what is the parameter {text!r}?")
        self.name, kind, nullable, self.default = m.groups()
        if self.name == "self":
            kind = "array"
        if kind not in KINDS:
            fail(f"{where}: {self.name} has no type that is known")
        self.kind, self.argument, self.stub = KINDS[kind]
        self.nullable = bool(nullable)
        self.required = self.default is None
        self.stub += " | None" if nullable and kind != "stream" else ""
        self.place = None

    def c_default(self):
        """Initializers of has_default and value."""
        if self.required or self.default == "None":
            return ""
        if self.kind in ("AXES", "INTS"):
            numbers = re.findall(r"-?\d+", self.default)
            if not numbers:
                return ", .has_default = true"
            return (f", .has_default = true, .value.ints = {{ (const int[]){{ {', '.join(numbers)}"
                    f" }}, {len(numbers)} }}")
        if self.kind == "OBJECT":  # the function by hand knows
            return ""
        if self.kind not in DEFAULT_FIELD:
            fail(f"{self.where}: {self.name} cannot have a default")
        value = {"True": "true", "False": "false"}.get(self.default, self.default)
        if self.kind == "STR":
            value = '"' + self.default.strip("'\"") + '"'
        elif self.kind == "DTYPE":
            value = "MLX_" + self.default.upper()
        elif self.kind in ("INT2", "INT3"):
            value = "{ " + ", ".join([self.default] * int(self.kind[3])) + " }"
        return f", .has_default = true, .value.{DEFAULT_FIELD[self.kind]} = {value}"

    def shown(self, types):
        text = self.name
        if types and self.name != "self":
            text += ": " + self.stub
        if types and not self.required:
            text += " = " + self.default
        elif not self.required:  # what inspect cannot know, None stands for as well
            text += "=" + ("None" if self.kind == "DTYPE" else self.default)
        return text


def split_outside(text, separator):
    """Splits at separators that are within no brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i].strip())
            start = i + len(separator)
    return [p for p in parts + [text[start:].strip()] if p]


class Row:
    """A function or method."""

    def __init__(self, text, module, where):
        self.module, self.where = module, where
        lines = text.splitlines()
        m = re.fullmatch(r"(\w+)\((.*)\)(?: -> (.+))?", lines[0])
        if not m or len(lines) < 2:
            fail(f"{where}: a row has a signature and a call")
        self.name, params, self.returns = m.groups()
        self.call = lines[1].strip()
        self.doc = "\n".join(l.strip() for l in lines[2:]).strip()
        self.rest, self.keywords, self.pos_only, self.star = None, None, 0, None
        self.params = []
        for part in split_outside(params, ","):
            if part == "/":
                self.pos_only = len(self.params)
            elif part == "*":
                self.star = len(self.params)
            elif part.startswith("**"):
                self.keywords = part
            elif part.startswith("*"):
                self.rest, self.star = part[1:].split(":")[0], len(self.params)
            else:
                self.params.append(Param(part, f"{where}: {self.name}"))
        self.pos = len(self.params) if self.star is None else self.star
        if params.startswith("self") and not self.pos_only:
            self.pos_only = 1
        self.required = sum(1 for _ in self.takewhile_required())
        word = self.call.split()
        self.raw = word[0] == "raw" and (word[1:] or [self.name])[0]
        self.hand = word[0] == "hand" and "hand_" + (word[1:] or [self.name])[0]
        self.c_name = f"fn_{module.rpartition('.')[2]}_{self.name}"

    def takewhile_required(self):
        for p in self.params:
            if not p.required:
                return
            yield p

    def signature(self, types):
        parts = [p.shown(types) for p in self.params]
        if self.rest:
            parts.insert(self.star, "*" + self.rest)
        elif self.star is not None:
            parts.insert(self.star, "*")
        if self.keywords and types:
            parts.append(self.keywords)
        if self.pos_only and not (self.pos_only == 1 and self.params[0].name == "self"):
            parts.insert(self.pos_only, "/")
        return ", ".join(parts)

    def alternatives(self):
        """[(tested parameter or None, function, [arguments])]"""
        found, rest = [], self.call
        while rest:
            m = re.match(r"(?:(\w+) \? )?(\w+)\(", rest)
            if not m:
                fail(f"{self.where}: {self.name}: what is {rest!r}?")
            end, depth = m.end(), 1
            while depth:
                depth += (rest[end] == "(") - (rest[end] == ")")
                end += 1
            found.append((m[1], m[2], split_outside(rest[m.end():end - 1], ",")))
            rest = rest[end:].removeprefix(" : ")
        return found

    def functions(self):
        if self.raw or self.hand:
            return [self.raw or self.hand]
        return [f for _, f, _ in self.alternatives()]


class Table:
    def __init__(self, path, functions_by_name=None):
        self.path, self.rows, self.aliases = pathlib.Path(path), [], []
        module, is_class = None, False
        text = re.sub(r"^#.*\n", "", self.path.read_text(), flags=re.M)
        for block in re.split(r"\n(?=\S)", text.strip()):
            block = block.strip()
            word, _, what = block.partition(" ")
            if word == "module":
                module, is_class = what, False
            elif word == "class":
                module, is_class = what, True
            elif word == "alias":
                new, _, old = what.partition(" = ")
                self.aliases.append((module, new, old))
            else:
                row = Row(block, module, self.path.name)
                row.is_method = is_class
                self.rows.append(row)

    def resolve(self, by_name):
        """Replaces "as NAME" by the call of that function on self."""
        for row in self.rows:
            if row.call.startswith("as "):
                other = by_name[row.call[3:].strip()]
                first = other.params[0].name
                row.call = re.sub(rf"\b{first}\b(?! \?)", "self", other.call)
                row.hand, row.raw = other.hand, other.raw
                row.doc = row.doc or other.doc


class Writer:
    """The C functions of a table."""

    def __init__(self, protos):
        self.protos, self.lines = protos, []

    def argument(self, row, name, wanted):
        """What a call passes for an argument of the table, given the C parameter's type."""
        for i, p in enumerate(row.params):
            if p.name == name:
                v = f"f.v[{i}]"
                if wanted.startswith("mlx_optional_"):
                    field = p.argument.format(v=v)
                    cast = "(float)" if wanted == "mlx_optional_float" else ""
                    return f"({wanted}){{ {cast}{field}, f.given[{i}] }}"
                if wanted == "float" and p.kind == "FLOAT":
                    return f"(float){v}.f"
                if p.argument is None:
                    fail(f"{row.where}: {row.name}: {name} is for functions by hand")
                if p.kind == "ARRAY" and p.nullable:
                    return f"{v}.array"
                return p.argument.format(v=v)
        m = re.fullmatch(r"(\w+) or (\w+)", name)
        if m:  # of an optional number
            i = next(i for i, p in enumerate(row.params) if p.name == m[1])
            return f"(f.given[{i}] ? {self.argument(row, m[1], 'int')} : {self.argument(row, m[2], 'int')})"
        m = re.fullmatch(r"dtype\((\w+)\)", name)
        if m:
            return f"mlx_array_dtype({self.argument(row, m[1], 'mlx_array')})"
        if re.fullmatch(r'-?[\d.]+|"\w*"|true|false|NULL|0|mlx_array_empty|MLX_\w+', name):
            return name
        fail(f"{row.where}: {row.name}: what is the argument {name!r}?")

    def c_call(self, row, function, arguments, results):
        wanted = self.protos[function][len(results):]
        out = list(results)
        at = 0
        for a in arguments:
            if at >= len(wanted):
                fail(f"{row.where}: {row.name}: too many arguments for {function}")
            text = self.argument(row, a, wanted[at])
            out.append(text)
            at += len(split_outside(text, ","))
        if at + 1 == len(wanted) and wanted[at] == "mlx_stream":
            out.append(next((f"f.v[{i}].stream" for i, p in enumerate(row.params)
                             if p.kind == "STREAM"), "(mlx_stream){ NULL }"))
            at += 1
        if at != len(wanted):
            fail(f"{row.where}: {row.name}: {function} takes {len(wanted)} arguments")
        return f"{function}({', '.join(out)})"

    def expression(self, row, results):
        text = ""
        for tested, function, arguments in row.alternatives():
            call = self.c_call(row, function, arguments, results)
            if tested:
                i = next((i for i, p in enumerate(row.params) if p.name == tested), None)
                if i is None:
                    fail(f"{row.where}: {row.name} has no parameter {tested}")
                # A bool is what it says, anything else whether it was given.
                test = f"f.v[{i}].b" if row.params[i].kind == "BOOL" else f"f.given[{i}]"
                text += f"{test} ? {call}\n           : "
            else:
                text += call
        return text

    def signature(self, row):
        n = row.c_name
        if row.params:
            self.lines.append(f"static const struct param {n}_params[] = {{")
            for p in row.params:
                nullable = ", .nullable = true" if p.nullable else ""
                self.lines.append(f'    {{ "{p.name}", KIND_{p.kind}{nullable}{p.c_default()} }},')
            self.lines.append("};")
            self.lines.append(f"static PyObject *{n}_names[{len(row.params)}];")
        params = f"{n}_params, {n}_names" if row.params else "NULL, NULL"
        rest = ", true" if row.rest else ""
        self.lines.append(
            f'const struct signature {n}_sig = {{ "{row.name}", {params}, {len(row.params)}, '
            f"{row.pos_only}, {row.pos}, {row.required}{rest} }};")

    def body(self, row):
        own = "self" if row.is_method else "NULL"
        begin = f"&{row.c_name}_sig, &(struct passed){{ {own}, args, n, keywords }})"
        plain = f"    if (!frame_open(&f, {begin})\n        return NULL;"
        if row.hand:
            return [plain, f"    return frame_object(&f, {row.hand}(&f));"]
        types = self.protos[row.functions()[0]]
        kind = result_kind(types)
        if kind == "array":
            return [f"    struct array_object *out = frame_begin(&f, {begin};",
                    "    if (!out)\n        return NULL;",
                    f"    return frame_array(&f, out, {self.expression(row, ['&f.out'])});"]
        if kind == "pair":
            return [f"    struct array_object *out[2] = {{ frame_begin(&f, {begin} }};",
                    "    if (!out[0])\n        return NULL;",
                    "    mlx_array second = { NULL };",
                    "    if ((out[1] = array_alloc()))\n        second = mlx_array_at(&out[1]->place);",
                    f"    return frame_pair(&f, out, !out[1] ? 1 : {self.expression(row, ['&f.out', '&second'])});"]
        if kind == "list":
            return [plain, "    mlx_vector_array vec = { NULL };",
                    f"    int rc = {self.expression(row, ['&vec'])};",
                    f"    return frame_arrays(&f, vec, {str(row.returns == 'tuple').lower()}, rc);"]
        if kind in ("int", "bool"):
            make = {"size_t": "PyLong_FromSize_t", "int": "PyLong_FromLong",
                    "bool": "PyBool_FromLong"}[types[0].rstrip("*")]
            return [plain, f"    {types[0].rstrip('*')} res = 0;",
                    f"    int rc = {self.expression(row, ['&res'])};",
                    f"    return frame_object(&f, rc ? error_raise() : {make}(res));"]
        return [plain, f"    int rc = {self.expression(row, [])};",
                "    return frame_object(&f, rc ? error_raise() : Py_NewRef(Py_None));"]

    def function(self, row):
        if row.raw:
            return
        self.signature(row)
        self.lines += [
            f"static PyObject *{row.c_name}(PyObject *self, PyObject *const *args, Py_ssize_t n,",
            "    PyObject *keywords)", "{", "    struct frame f;",
            *([] if row.is_method else ["    (void)self;"]), *self.body(row), "}", ""]

    def method(self, row):
        function = row.raw or row.c_name
        own = "$self" if row.is_method else "$module"
        shown = row.signature(False).removeprefix("self").removeprefix(", ")
        first = f"{row.name}({row.signature(True)}) -> {returned(row, self.protos)}"
        doc = [f"{row.name}({own}{', /' if row.is_method and not row.pos_only > 1 else ''}"
               f"{', ' if shown else ''}{shown})\n--\n\n{first}", row.doc]
        text = "\n\n".join(d for d in doc if d)
        quoted = "\n     ".join(f'"{escape(l)}\\n"' for l in text.split("\n"))
        self.lines.append(f'    {{ "{row.name}", (PyCFunction)(void (*)(void)){function},'
                          f" METH_FASTCALL | METH_KEYWORDS,\n     {quoted} }},")


def escape(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


def result_kind(types):
    if types[:2] == ["mlx_array*", "mlx_array*"]:
        return "pair"
    if types[:1] == ["mlx_array*"]:
        return "array"
    base = types[0].rstrip("*") if types and types[0].endswith("*") else None
    return RESULTS.get(base, "None")


def returned(row, protos):
    """The type that a signature shows."""
    if row.returns and row.returns != "tuple":
        return row.returns
    if row.raw or row.hand:
        return "tuple[array, ...]" if row.returns else "array"
    kind = result_kind(protos[row.functions()[0]])
    if kind == "list":
        return "tuple[array, ...]" if row.returns else "list[array]"
    return {"pair": "tuple[array, array]"}.get(kind, kind)


def read_tables(paths, protos):
    """All tables, without what the library lacks, and the rows that were left out."""
    tables = [Table(p) for p in paths]
    by_name = {r.name: r for t in tables for r in t.rows if not r.is_method
               and r.module == "mlx.core"}
    absent = []
    for t in tables:
        t.resolve(by_name)
        absent += [(t, r) for r in t.rows if any(f not in protos for f in r.functions())]
        t.rows = [r for r in t.rows if all(f in protos for f in r.functions())]
    names = {f"{r.module}.{r.name}" for t in tables for r in t.rows}
    for t in tables:
        t.aliases = [(m, new, old if "." in old else f"{m}.{old}") for m, new, old in t.aliases]
        t.aliases = [a for a in t.aliases if a[2] in names]
    return tables, absent


def write_c(table_path, out, headers, sources):
    protos = prototypes(headers, sources)
    tables, _ = read_tables(sorted(pathlib.Path(table_path).parent.glob("*.def")), protos)
    table = next(t for t in tables if t.path.name == pathlib.Path(table_path).name)
    w = Writer(protos)
    w.lines = [f"/* Made by gen_python.py from {table.path.name}. */", '#include "args.h"',
               '#include "hand.h"', ""]
    for row in table.rows:
        w.function(row)
    for module in dict.fromkeys(r.module for r in table.rows):
        rows = [r for r in table.rows if r.module == module]
        name = "array_methods" if rows[0].is_method else methods_name(table, module)
        w.lines.append(f"PyMethodDef {name}[] = {{")
        for row in rows:
            w.method(row)
        w.lines += ["    { NULL, NULL, 0, NULL },", "};"]
    pathlib.Path(out).write_text("\n".join(w.lines) + "\n")


def methods_name(table, module):
    return f"{table.path.stem}_{module.replace('.', '_')}_methods"


def write_index(out_c, out_h, headers, sources, paths):
    protos = prototypes(headers, sources)
    tables, absent = read_tables(paths, protos)
    for table, row in absent:
        missing = ", ".join(f for f in row.functions() if f not in protos)
        print(f"{table.path.name}: {row.name} is left out, there is no {missing}")
    rows = [r for t in tables for r in t.rows]
    header = ["/* Made by gen_python.py: the functions by hand that the tables name. */", "#pragma once",
              '#include "args.h"', ""]
    header += [f"PyObject *{h}(struct frame *f);" for h in dict.fromkeys(r.hand for r in rows if r.hand)]
    header += [f"PyObject *{h}(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords);"
               for h in dict.fromkeys(r.raw for r in rows if r.raw)]
    pathlib.Path(out_h).write_text("\n".join(header) + "\n")
    lines = ["/* Made by gen_python.py: the tables of functions. */", '#include "args.h"', ""]
    modules = [(t, m) for t in tables for m in dict.fromkeys(r.module for r in t.rows
                                                            if not r.is_method)]
    lines += [f"extern PyMethodDef {methods_name(t, m)}[];" for t, m in modules]
    lines += ["const struct function_table function_tables[] = {"]
    lines += [f'    {{ "{m}", {methods_name(t, m)} }},' for t, m in modules]
    lines += ["    { NULL, NULL },", "};", "const struct function_alias function_aliases[] = {"]
    for t in tables:
        for module, new, old in t.aliases:
            target, _, name = old.rpartition(".")
            lines.append(f'    {{ "{module}", "{new}", "{target or module}", "{name}" }},')
    lines += ["    { NULL, NULL, NULL, NULL },", "};"]
    sigs = [f"{r.c_name}_sig" for r in rows if not r.raw]
    lines += [f"extern const struct signature {s};" for s in sigs]
    lines += ["const struct signature *const all_signatures[] = {"]
    lines += [f"    &{s}," for s in sigs] + ["    NULL,", "};"]
    pathlib.Path(out_c).write_text("\n".join(lines) + "\n")


def stub_of(row, protos, indent):
    """A function as a .pyi file has it."""
    lines = [f"def {row.name}({row.signature(True)}) -> {returned(row, protos)}:"]
    doc = escape(row.doc).splitlines()
    if len(doc) > 1:
        lines += ['    """' + doc[0], *["    " + l if l else "" for l in doc[1:]], '    """']
    elif doc:
        lines.append(f'    """{doc[0]}"""')
    lines.append("    ...")
    return "\n".join(indent + l if l else "" for l in lines) + "\n"


def stub_begin(classes, module):
    """What the functions of a module follow in its stubs: a file of its own, if there is one."""
    path = pathlib.Path(classes).with_name(module.rpartition(".")[2] + ".pyi")
    if path.exists():
        return path.read_text()
    return ("from typing import Any, Sequence\n\n"
            "from mlx.core import Dtype, StreamOrDevice, array, float32, int32, scalar\n")


def write_stubs(folder, classes, headers, sources, paths):
    """One file for each module; that of mlx.core begins with the classes, of which array is the last."""
    protos = prototypes(headers, sources)
    tables, _ = read_tables(paths, protos)
    texts = {"mlx.core": [pathlib.Path(classes).read_text()]}
    for table in tables:
        for row in table.rows:
            if row.is_method:
                texts["mlx.core"].insert(1, stub_of(row, protos, "    "))
    for table in tables:
        for row in table.rows:
            if not row.is_method:
                texts.setdefault(row.module, [stub_begin(classes, row.module)])
                texts[row.module].append(stub_of(row, protos, ""))
        for module, new, old in table.aliases:
            target, _, name = old.rpartition(".")
            if target == module:
                texts[module].append(f"{new} = {name}\n")
            else:
                texts[module].append(f"from {target} import {name} as {new}\n")
    for module, parts in texts.items():
        name = "__init__" if module == "mlx.core" else module.rpartition(".")[2]
        pathlib.Path(folder, name + ".pyi").write_text("\n".join(parts))


def main(argv):
    if argv[:1] == ["c"] and len(argv) == 5:
        write_c(*argv[1:])
    elif argv[:1] == ["index"] and len(argv) > 5:
        write_index(*argv[1:5], argv[5:])
    elif argv[:1] == ["stubs"] and len(argv) > 5:
        write_stubs(*argv[1:5], argv[5:])
    else:
        fail(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
