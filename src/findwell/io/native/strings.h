/* Columns of strings: those of polars are read in place, and those that were read become columns of
 * polars, both by Arrow's C data interface, so that no library has to be linked. */
#ifndef FINDWELL_STRINGS_H
#define FINDWELL_STRINGS_H

#include "lines.h"

/* --- columns of strings, as Arrow passes them between libraries ---------------------------- */

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

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

typedef struct { /* a string: its bytes where they are few, else the buffer that holds them */
    int32_t size;
    char begin[4];
    int32_t buffer;
    int32_t offset;
} View;

enum { INLINE = 12 };

/* The strings of a column, read in place; the arrays, one for each piece of it, keep them alive. */
typedef struct {
    struct ArrowArray *arrays;
    size_t *first; /* of the strings in each of them, and one more: how many there are */
    size_t count;
} Strings;

static size_t size_of(const Strings *strings)
{
    return strings->count ? strings->first[strings->count] : 0;
}

static size_t piece_of(const Strings *strings, size_t number)
{
    size_t low = 0, high = strings->count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (strings->first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* `piece` is where the last string was found: the next one is near. */
static Text text_at(const Strings *strings, size_t number, size_t *piece)
{
    if (RARELY(number < strings->first[*piece] || number >= strings->first[*piece + 1]))
        *piece = piece_of(strings, number);
    const struct ArrowArray *array = &strings->arrays[*piece];
    const View *view =
        (const View *)array->buffers[1] + array->offset + (number - strings->first[*piece]);
    Text text = {(const char *)view + offsetof(View, begin), (size_t)view->size};
    if (view->size > INLINE)
        text.at = (const char *)array->buffers[2 + view->buffer] + view->offset;
    return text;
}

static void free_strings(Strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        strings->arrays[i].release(&strings->arrays[i]);
    free(strings->arrays);
    free(strings->first);
    memset(strings, 0, sizeof *strings);
}

static int add_array(Strings *strings, struct ArrowArray *next)
{
    size_t size = size_of(strings);
    struct ArrowArray *arrays = realloc(strings->arrays, (strings->count + 1) * sizeof *arrays);
    strings->arrays = arrays ? arrays : strings->arrays;
    size_t *first = realloc(strings->first, (strings->count + 2) * sizeof *first);
    strings->first = first ? first : strings->first;
    if (arrays == NULL || first == NULL)
        return -1;
    arrays[strings->count] = *next;
    first[strings->count++] = size;
    first[strings->count] = size + (size_t)next->length;
    return 0;
}

/* Strings that the kernel made: shared by a column, those it was handed to, and an index. */
typedef struct {
    View *views;
    char *bytes; /* of those that are too long for a view */
    size_t count;
    int64_t sizes[1]; /* of the bytes */
    const void *buffers[4];
    int users; /* other libraries release theirs in any thread */
} Made;

static void free_made(Made *made)
{
    if (made == NULL || __atomic_sub_fetch(&made->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(made->views);
    free(made->bytes);
    free(made);
}

/* Strings that come one by one. */
typedef struct {
    View *views;
    char *bytes;
    size_t count, room, used, bytes_room;
} Texts;

static void free_texts(Texts *texts)
{
    free(texts->views);
    free(texts->bytes);
    memset(texts, 0, sizeof *texts);
}

static int has_room(Texts *texts, size_t size)
{
    if (texts->count == texts->room) {
        size_t room = texts->room ? texts->room * 2 : 4096;
        View *views = realloc(texts->views, room * sizeof *views);
        if (views == NULL)
            return 0;
        texts->views = views;
        texts->room = room;
    }
    if (size > INLINE && size > texts->bytes_room - texts->used) {
        size_t room = texts->bytes_room * 2 + size + 4096;
        char *bytes = texts->used + size > INT32_MAX ? NULL : realloc(texts->bytes, room);
        if (bytes == NULL)
            return 0;
        texts->bytes = bytes;
        texts->bytes_room = room;
    }
    return 1;
}

/* Add a string; -1: there is no memory, or too much text for one column. */
static int add_text(Texts *texts, Text text)
{
    if (RARELY(texts->count == texts->room || text.size > INLINE) && !has_room(texts, text.size))
        return -1;
    View *view = &texts->views[texts->count++];
    *view = (View){.size = (int32_t)text.size};
    char *begin = (char *)view + offsetof(View, begin);
    if (RARELY(text.size > INLINE)) {
        memcpy(begin, text.at, sizeof view->begin);
        view->offset = (int32_t)texts->used;
        memcpy(texts->bytes + texts->used, text.at, text.size);
        texts->used += text.size;
    }
    else if (text.size >= 8) {
        memcpy(begin, text.at, 8);
        memcpy(begin + text.size - 8, text.at + text.size - 8, 8);
    }
    else if (text.size >= 4) {
        memcpy(begin, text.at, 4);
        memcpy(begin + text.size - 4, text.at + text.size - 4, 4);
    }
    else
        for (size_t i = 0; i < text.size; i++)
            begin[i] = text.at[i];
    return 0;
}

/* Return the strings as a column; nothing is left here. */
static Made *take_made(Texts *texts)
{
    Made *made = calloc(1, sizeof *made);
    if (texts->bytes == NULL) /* no buffer may be NULL */
        texts->bytes = malloc(1);
    if (made == NULL || texts->bytes == NULL || (!texts->room && !has_room(texts, 0))) {
        free(made);
        free_texts(texts);
        return NULL;
    }
    made->users = 1;
    made->views = texts->views;
    made->bytes = texts->bytes;
    made->count = texts->count;
    made->sizes[0] = (int64_t)texts->used;
    made->buffers[1] = made->views;
    made->buffers[2] = made->bytes;
    made->buffers[3] = made->sizes;
    memset(texts, 0, sizeof *texts);
    return made;
}

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_array(struct ArrowArray *array)
{
    free_made(array->private_data);
    array->release = NULL;
}

/* Hand the strings to one more user. */
static struct ArrowArray share(Made *made)
{
    __atomic_add_fetch(&made->users, 1, __ATOMIC_ACQ_REL);
    return (struct ArrowArray){.length = (int64_t)made->count,
                               .n_buffers = 4,
                               .buffers = made->buffers,
                               .release = release_array,
                               .private_data = made};
}

static void drop_schema(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release)
        schema->release(schema);
    free(schema);
}

static void drop_array(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release)
        array->release(array);
    free(array);
}

typedef struct {
    PyObject_HEAD
    Made *made;
} Column;

static PyObject *column_export(PyObject *self, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kw))
{
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    struct ArrowArray *array = calloc(1, sizeof *array);
    PyObject *first = NULL, *second = NULL;
    if (schema == NULL || array == NULL) {
        free(schema);
        free(array);
        return PyErr_NoMemory();
    }
    *schema = (struct ArrowSchema){.format = "vu", .name = "", .release = release_schema};
    first = PyCapsule_New(schema, "arrow_schema", drop_schema);
    if (first == NULL) {
        free(schema);
        free(array);
        return NULL;
    }
    second = PyCapsule_New(array, "arrow_array", drop_array);
    if (second == NULL) {
        free(array);
        Py_DECREF(first);
        return NULL;
    }
    *array = share(((Column *)self)->made);
    return Py_BuildValue("(NN)", first, second);
}

static void column_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free_made(((Column *)self)->made);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Py_ssize_t column_size(PyObject *self) { return (Py_ssize_t)((Column *)self)->made->count; }

static PyObject *column_item(PyObject *self, Py_ssize_t at)
{
    const Made *made = ((Column *)self)->made;
    if (at < 0 || at >= (Py_ssize_t)made->count) {
        PyErr_SetString(PyExc_IndexError, "the column has no such row");
        return NULL;
    }
    const View *view = &made->views[at];
    const char *text = view->size > INLINE ? made->bytes + view->offset : view->begin;
    return PyUnicode_DecodeUTF8(text, view->size, NULL);
}

static PyMethodDef COLUMN_METHODS[] = {
    {"__arrow_c_array__", (PyCFunction)(void (*)(void))column_export,
     METH_VARARGS | METH_KEYWORDS, "Share the strings."},
    {0},
};

static PyType_Slot COLUMN_SLOTS[] = {
    {Py_tp_doc, "Strings that were read, for libraries that take Arrow data."},
    {Py_tp_methods, COLUMN_METHODS},
    {Py_sq_length, column_size},
    {Py_sq_item, column_item},
    {Py_tp_dealloc, column_free},
    {0},
};

static PyType_Spec COLUMN = {"findwell.io.native._kernel.Column", sizeof(Column), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             COLUMN_SLOTS};
static PyTypeObject *column_type;

static PyObject *new_column(Made *made)
{
    Column *column = made ? PyObject_New(Column, column_type) : NULL;
    if (column == NULL) {
        free_made(made);
        return PyErr_NoMemory();
    }
    column->made = made;
    return (PyObject *)column;
}

/* Take the strings of a tuple of columns that the kernel made. */
static int take_columns(Strings *strings, PyObject *columns)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(columns); i++) {
        PyObject *column = PyTuple_GetItem(columns, i);
        if (column == NULL || !Py_IS_TYPE(column, column_type)) {
            PyErr_SetString(PyExc_TypeError, "columns that the kernel made are needed");
            return -1;
        }
        struct ArrowArray next = share(((Column *)column)->made);
        if (!next.length)
            next.release(&next);
        else if (add_array(strings, &next) != 0) {
            next.release(&next);
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

/* Take the strings of an object with __arrow_c_stream__: views, without nulls. */
static int take_strings(Strings *strings, PyObject *column)
{
    if (PyTuple_Check(column))
        return take_columns(strings, column);
    struct ArrowSchema schema = {0};
    PyObject *capsule = PyObject_CallMethod(column, "__arrow_c_stream__", NULL);
    if (capsule == NULL)
        return -1;
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    int fine = stream && stream->get_schema(stream, &schema) == 0 &&
               strcmp(schema.format, "vu") == 0;
    while (fine) {
        struct ArrowArray next = {0};
        fine = stream->get_next(stream, &next) == 0;
        if (next.release == NULL)
            break;
        fine = fine && next.null_count == 0;
        if (next.length && fine)
            fine = add_array(strings, &next) == 0;
        if (!next.length || !fine)
            next.release(&next);
    }
    if (!fine && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "strings without nulls are needed");
    if (schema.release)
        schema.release(&schema);
    Py_DECREF(capsule);
    return fine ? 0 : -1;
}

#endif
