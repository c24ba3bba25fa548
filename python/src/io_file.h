/* File objects of Python as readers and writers of the library, and names of files. */
#pragma once

#include "core.h"

/* Whether o names a file: a str, or a path of pathlib. */
bool io_is_path(PyObject *o);

/* The name as a str, a new reference. */
PyObject *io_path(PyObject *o);

/* Whether o is a file object to read or to write bytes. */
bool io_is_reader(PyObject *o);
bool io_is_writer(PyObject *o);

/* A reader or writer on a file object, which it keeps; the empty handle with an exception set. An
 * exception of the object's methods is raised by io_check. */
mlx_io_reader io_reader(PyObject *file);
mlx_io_writer io_writer(PyObject *file);

/* Frees the handle and says whether all went well: rc of what was done with it. */
bool io_reader_end(mlx_io_reader r, int rc);
bool io_writer_end(mlx_io_writer w, int rc);
