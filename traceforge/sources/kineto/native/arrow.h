/* A batch handed over without a copy. */
#ifndef TRACEFORGE_ARROW_H
#define TRACEFORGE_ARROW_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "columns.h"

/* Tuples of two capsules, as `__arrow_c_array__` returns them; they take the rows, which are gone from here then. */
PyObject *arrow_of_columns(Columns *columns);
PyObject *arrow_of_texts(Texts *texts);

#endif
