/* A batch handed over without a copy. */
#ifndef TRACEFORGE_ARROW_H
#define TRACEFORGE_ARROW_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "columns.h"

/* A tuple of two capsules, as `__arrow_c_array__` returns it; takes the rows, which are gone from `columns` then. */
PyObject *arrow_capsules(Columns *columns);

#endif
