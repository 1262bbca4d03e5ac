/* A batch handed over without a copy. In: columns. Out: Arrow's C data interface, in two capsules.

   Idea: a struct array with one child a column; each child frees its own buffers when its reader releases it.
   Source: https://arrow.apache.org/docs/format/CDataInterface.html (structs copied from there, as it asks for). */
#include "arrow.h"

#include <stdlib.h>
#include <string.h>

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

/* A whole tree in one piece of memory, the root's; children that were moved away outlive it as copies. */
typedef struct {
    struct ArrowSchema root, children[COLUMN_COUNT];
    struct ArrowSchema *pointers[COLUMN_COUNT];
} SchemaTree;

typedef struct {
    struct ArrowArray root, children[COLUMN_COUNT];
    struct ArrowArray *pointers[COLUMN_COUNT];
    const void *no_buffer;
} ArrayTree;

#define MOST_BUFFERS 3

/* Columns of one length. Buffers of each: validity bits (NULL where none is absent), values, and bytes of texts. */
typedef struct {
    const ColumnType *types;
    int count;
    size_t length;
    void *buffers[COLUMN_COUNT][MOST_BUFFERS];
} Batch;

static const ColumnType TEXT_COLUMNS[] = {{"event_id", "l", 8}, {"args", "U", 8}};
#define TEXT_COLUMN_COUNT 2

static int buffer_count(const ColumnType *type) { return type->format[0] == 'U' ? 3 : 2; }

static void release_child_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
    schema->release = NULL;
    free(schema->private_data);
}

static void release_column(struct ArrowArray *array) {
    const void **buffers = array->private_data;
    for (int64_t i = 0; i < array->n_buffers; i++) free((void *)(uintptr_t)buffers[i]);
    free(buffers);
    array->release = NULL;
}

static void release_array(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release) array->children[i]->release(array->children[i]);
    array->release = NULL;
    free(array->private_data);
}

static SchemaTree *schema_tree(const Batch *batch) {
    SchemaTree *tree = calloc(1, sizeof *tree);
    if (!tree) return NULL;
    for (int i = 0; i < batch->count; i++) {
        tree->children[i] = (struct ArrowSchema){.format = batch->types[i].format,
                                                 .name = batch->types[i].name,
                                                 .flags = ARROW_FLAG_NULLABLE,
                                                 .release = release_child_schema};
        tree->pointers[i] = &tree->children[i];
    }
    tree->root = (struct ArrowSchema){.format = "+s",
                                      .name = "",
                                      .n_children = batch->count,
                                      .children = tree->pointers,
                                      .release = release_schema,
                                      .private_data = tree};
    return tree;
}

static int64_t absent_count(const uint8_t *valid, size_t count) {
    int64_t present = 0;
    for (size_t i = 0; i < (count + 7) / 8; i++) /* bits behind the last row are 0 */
        for (uint8_t bits = valid[i]; bits; bits &= (uint8_t)(bits - 1)) present++;
    return (int64_t)count - present;
}

/* A column that owns its buffers; those of the batch are left where memory is lacking. */
static bool take_column(struct ArrowArray *array, Batch *batch, int i) {
    const void **buffers = calloc(MOST_BUFFERS, sizeof *buffers);
    if (!buffers) return false;
    void **own = batch->buffers[i];
    int64_t absent = own[0] ? absent_count(own[0], batch->length) : 0;
    if (!absent) {
        free(own[0]);
        own[0] = NULL;
    }
    for (int n = 0; n < MOST_BUFFERS; n++) {
        buffers[n] = own[n];
        own[n] = NULL;
    }
    *array = (struct ArrowArray){.length = (int64_t)batch->length,
                                 .null_count = absent,
                                 .n_buffers = buffer_count(&batch->types[i]),
                                 .buffers = buffers,
                                 .release = release_column,
                                 .private_data = buffers};
    return true;
}

static ArrayTree *array_tree(Batch *batch) {
    ArrayTree *tree = calloc(1, sizeof *tree);
    if (!tree) return NULL;
    for (int i = 0; i < batch->count; i++) tree->pointers[i] = &tree->children[i];
    tree->root = (struct ArrowArray){.length = (int64_t)batch->length,
                                     .n_buffers = 1,
                                     .n_children = batch->count,
                                     .buffers = &tree->no_buffer,
                                     .children = tree->pointers,
                                     .release = release_array,
                                     .private_data = tree};
    for (int i = 0; i < batch->count; i++)
        if (!take_column(&tree->children[i], batch, i)) {
            release_array(&tree->root);
            return NULL;
        }
    return tree;
}

static void free_schema_capsule(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release) schema->release(schema);
    free(schema);
}

static void free_array_capsule(PyObject *capsule) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release) array->release(array);
    free(array);
}

static PyObject *schema_capsule(const Batch *batch) {
    SchemaTree *tree = schema_tree(batch);
    struct ArrowSchema *moved = malloc(sizeof *moved);
    if (!tree || !moved) {
        free(tree);
        free(moved);
        return PyErr_NoMemory();
    }
    *moved = tree->root;
    PyObject *capsule = PyCapsule_New(moved, "arrow_schema", free_schema_capsule);
    if (!capsule) {
        moved->release(moved);
        free(moved);
    }
    return capsule;
}

static PyObject *array_capsule(Batch *batch) {
    ArrayTree *tree = array_tree(batch);
    struct ArrowArray *moved = malloc(sizeof *moved);
    if (!tree || !moved) {
        if (tree) release_array(&tree->root);
        free(moved);
        return PyErr_NoMemory();
    }
    *moved = tree->root;
    PyObject *capsule = PyCapsule_New(moved, "arrow_array", free_array_capsule);
    if (!capsule) {
        moved->release(moved);
        free(moved);
    }
    return capsule;
}

static PyObject *capsules(Batch *batch) {
    PyObject *schema = schema_capsule(batch);
    PyObject *array = schema ? array_capsule(batch) : NULL;
    PyObject *pair = array ? PyTuple_Pack(2, schema, array) : NULL;
    Py_XDECREF(schema);
    Py_XDECREF(array);
    for (int i = 0; i < batch->count; i++) /* what was not handed over */
        for (int n = 0; n < MOST_BUFFERS; n++) free(batch->buffers[i][n]);
    return pair;
}

PyObject *arrow_of_columns(Columns *columns) {
    Batch batch = {.types = COLUMNS, .count = COLUMN_COUNT, .length = columns->count};
    for (int i = 0; i < COLUMN_COUNT; i++) {
        batch.buffers[i][0] = columns->valid[i];
        batch.buffers[i][1] = columns->values[i];
    }
    memset(columns, 0, sizeof *columns);
    return capsules(&batch);
}

PyObject *arrow_of_texts(Texts *texts) {
    Batch batch = {.types = TEXT_COLUMNS, .count = TEXT_COLUMN_COUNT, .length = texts->count};
    batch.buffers[0][1] = texts->event_ids;
    batch.buffers[1][1] = texts->offsets;
    batch.buffers[1][2] = texts->data;
    memset(texts, 0, sizeof *texts);
    return capsules(&batch);
}
