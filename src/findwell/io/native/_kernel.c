/* Runs and judgements in one pass: read, rank and match the rows of each query.
 *
 * They come from TREC files, lines of JSON, Python objects, or columns of strings.
 *
 * The kernel reads only what is plain: lines with exactly the expected columns, numbers in plain
 * decimal spelling, valid UTF-8, no document twice in a query. About anything else it says nothing:
 * it declines the block (returns None), and the code in Python, which defines what a line means,
 * reads that block. So there is one place for messages and findings, and the kernel cannot differ.
 *
 * Blocks are independent of each other and are worked on without the GIL, so threads share them.
 * Only the limited API of Python 3.11 is used: one build serves all later versions.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "lists.h"

/* --- a block of a run ------------------------------------------------------------------------ */

typedef struct {
    Drawing drawing;
    Names extra;
    char *seen;      /* per query: whether it was met in this block */
    int64_t rows;  /* lines that are rows */
    int scattered;   /* a query was met, left, and met again */
} Block;

static int is_plain(const char *data, const char *end)
{
    return memchr(data, 0, (size_t)(end - data)) == NULL &&
           is_utf8((const uint8_t *)data, (const uint8_t *)end);
}

/* Read query, document and score of the next line of a run. 0: the end; -1: it is not plain. */
static int next_row(const char **at, const char *end, int columns, int narrow, Text *query, Text *doc,
                    double *score)
{
    Text words[WORDS];
    int count = next_line(at, end, words);
    if (count == 0)
        return 0;
    if (count != columns || !read_number(words[4], score) || begins_blank(words[2]) ||
        begins_blank(words[0]))
        return -1;
    if (narrow)
        *score = (double)(float)*score;
    *query = words[0];
    *doc = words[2];
    return isfinite(*score) ? 1 : -1;
}

/* Draw a block whose queries stand together; if one comes back, stop and say so. */
static int draw_contiguous(Block *block, const char *data, const char *end, int columns, int narrow)
{
    Drawing *d = &block->drawing;
    const char *at = data;
    Text present = {NULL, 0}, query, doc;
    int64_t number = -1;
    double score;
    int state, outcome = PLAIN;
    while ((state = next_row(&at, end, columns, narrow, &query, &doc, &score)) > 0) {
        if (!same_text(query, present)) {
            if (number >= 0 && (outcome = draw_query(d, number)) != PLAIN)
                return outcome;
            int64_t known = find_query(d->index, query, number + 1);
            present = query;
            if (known < 0 && add_name(&block->extra, query) != PLAIN)
                return FAILED;
            if (known >= 0 && block->seen[known]++) {
                block->scattered = 1;
                return PLAIN;
            }
            number = known;
        }
        if (number >= 0 && add_row(d, doc, score) != PLAIN)
            return FAILED;
        block->rows++;
    }
    if (state < 0)
        return DECLINED;
    return number >= 0 ? draw_query(d, number) : PLAIN;
}

typedef struct {
    Row row;
    int64_t query;
} Scattered;

static int by_query(const void *a, const void *b)
{
    const Scattered *x = *(const Scattered *const *)a, *y = *(const Scattered *const *)b;
    if (x->query != y->query)
        return (x->query > y->query) - (x->query < y->query);
    return (x > y) - (x < y); /* as they were */
}

/* Draw a block whose queries are scattered: gather all rows, then go query by query. */
static int draw_scattered(Block *block, const char *data, const char *end, int columns, int narrow)
{
    Drawing *d = &block->drawing;
    const char *at = data;
    Scattered *rows = NULL, **order = NULL, next;
    size_t count = 0, room = 0;
    Text present = {NULL, 0}, query, doc;
    int64_t number = -1;
    double score;
    int state, outcome = FAILED;
    while ((state = next_row(&at, end, columns, narrow, &query, &doc, &score)) > 0) {
        if (!same_text(query, present)) {
            number = find_query(d->index, query, number + 1);
            present = query;
            if (number < 0 && add_name(&block->extra, query) != PLAIN)
                goto done;
        }
        block->rows++;
        if (number < 0)
            continue;
        if (count == room) {
            room = room ? room * 2 : 4096;
            Scattered *grown = realloc(rows, room * sizeof *rows);
            if (grown == NULL)
                goto done;
            rows = grown;
        }
        next.query = number;
        next.row.doc = doc;
        next.row.score = score;
        rows[count++] = next;
    }
    outcome = DECLINED;
    if (state < 0)
        goto done;
    outcome = FAILED;
    order = malloc((count ? count : 1) * sizeof *order);
    if (order == NULL)
        goto done;
    for (size_t i = 0; i < count; i++)
        order[i] = &rows[i];
    qsort(order, count, sizeof *order, by_query);
    outcome = PLAIN;
    for (size_t i = 0; i < count && outcome == PLAIN; i++) {
        outcome = add_row(d, order[i]->row.doc, order[i]->row.score);
        if (outcome == PLAIN && (i + 1 == count || order[i + 1]->query != order[i]->query))
            outcome = draw_query(d, order[i]->query);
    }
done:
    free(rows);
    free(order);
    return outcome;
}

static void clear_block(Block *block)
{
    for (int i = 0; i < ARRAYS; i++)
        block->drawing.out[i].count = 0;
    block->drawing.count = 0;
    block->rows = 0;
}

/* Return what was drawn: arrays, names of queries that the gold lacks, and how many documents. */
static PyObject *drawn(Block *block, int outcome)
{
    PyObject *result = NULL;
    if (outcome == FAILED)
        PyErr_NoMemory();
    else if (outcome == DECLINED)
        result = Py_NewRef(Py_None);
    else {
        PyObject *arrays = PyTuple_New(ARRAYS), *extra = as_list(&block->extra);
        for (int i = 0; arrays && i < ARRAYS; i++) {
            PyObject *array = take_numbers(&block->drawing.out[i]);
            if (array == NULL || PyTuple_SetItem(arrays, i, array) != 0)
                Py_CLEAR(arrays);
        }
        if (arrays && extra)
            result = Py_BuildValue("(NNL)", arrays, extra, (long long)block->rows);
        else {
            Py_XDECREF(arrays);
            Py_XDECREF(extra);
        }
    }
    free_drawing(&block->drawing);
    free_names(&block->extra);
    free(block->seen);
    return result;
}

static PyObject *index_draw(PyObject *self, PyObject *args)
{
    Py_buffer data;
    int columns, narrow, outcome = DECLINED;
    if (!PyArg_ParseTuple(args, "y*ip", &data, &columns, &narrow))
        return NULL;
    if (data.len >= INT32_MAX) { /* numbers of rows and places in the block would not fit */
        PyBuffer_Release(&data);
        return Py_NewRef(Py_None);
    }
    Block block = {.drawing.index = (Index *)self};
    const char *begin = data.buf, *end = begin + data.len;
    Py_BEGIN_ALLOW_THREADS
    block.seen = calloc(size_of(&block.drawing.index->queries) + 1, 1);
    if (block.seen == NULL)
        outcome = FAILED;
    else if (is_plain(begin, end))
        outcome = draw_contiguous(&block, begin, end, columns, narrow);
    if (outcome == PLAIN && block.scattered) {
        clear_block(&block);
        outcome = draw_scattered(&block, begin, end, columns, narrow);
    }
    Py_END_ALLOW_THREADS
    PyObject *result = drawn(&block, outcome);
    PyBuffer_Release(&data);
    return result;
}

/* Draw the rows of a query that is known by its name; one that comes back is declined. */
static int draw_named(Block *block, Text query, int64_t *number)
{
    Drawing *d = &block->drawing;
    int64_t known = find_query(d->index, query, *number + 1);
    block->rows += (int64_t)d->count;
    if (known < 0) {
        d->count = 0;
        return add_name(&block->extra, query);
    }
    *number = known;
    if (block->seen[known]++)
        return DECLINED;
    if (d->count)
        return draw_query(d, known);
    return push(&d->out[ASKED], known) ? FAILED : PLAIN;
}

static int draw_records(Block *block, Json *json)
{
    Text query;
    int64_t number = -1;
    int state, outcome;
    while ((state = next_record(json, &block->drawing, &query, 1)) > 0)
        if ((outcome = draw_named(block, query, &number)) != PLAIN)
            return outcome;
    return state == 0 ? PLAIN : state == -1 ? DECLINED : FAILED;
}

/* Draw a block of lines of JSON, with the field that holds what was retrieved. */
static PyObject *index_draw_records(PyObject *self, PyObject *args)
{
    Py_buffer data;
    const char *field;
    int outcome = DECLINED;
    if (!PyArg_ParseTuple(args, "y*s", &data, &field))
        return NULL;
    if (data.len >= INT32_MAX) {
        PyBuffer_Release(&data);
        return Py_NewRef(Py_None);
    }
    Block block = {.drawing.index = (Index *)self};
    Json json = {data.buf, (const char *)data.buf + data.len, {field, strlen(field)}};
    Py_BEGIN_ALLOW_THREADS
    block.seen = calloc(size_of(&block.drawing.index->queries) + 1, 1);
    if (block.seen == NULL)
        outcome = FAILED;
    else if (is_plain(json.at, json.end))
        outcome = draw_records(&block, &json);
    Py_END_ALLOW_THREADS
    PyObject *result = drawn(&block, outcome);
    PyBuffer_Release(&data);
    return result;
}

static int draw_columns(Block *block, const Strings *queries, const int32_t *counts,
                        const Strings *docs, const double *scores, int narrow)
{
    size_t row = 0, name = 0, piece = 0;
    int64_t number = -1;
    int outcome = PLAIN;
    for (size_t i = 0; i < size_of(queries) && outcome == PLAIN; i++) {
        for (int32_t place = 0; place < counts[i] && outcome == PLAIN; place++, row++) {
            double score = scores ? scores[row] : -(double)place;
            if (narrow)
                score = (double)(float)score;
            Text doc = text_at(docs, row, &piece);
            outcome = isfinite(score) && !may_be_blank(doc) ? add_row(&block->drawing, doc, score)
                                                            : DECLINED;
        }
        if (outcome == PLAIN)
            outcome = draw_named(block, text_at(queries, i, &name), &number);
    }
    return outcome;
}

/* Draw columns: queries, how many documents each has, documents, and their scores, if any. */
static PyObject *index_draw_columns(PyObject *self, PyObject *args)
{
    PyObject *names, *ids, *numbers, *result = NULL;
    Py_buffer counts = {0}, scores = {0};
    Strings queries = {0}, docs = {0};
    int narrow, unique, outcome = FAILED;
    if (!PyArg_ParseTuple(args, "Oy*OOpp", &names, &counts, &ids, &numbers, &narrow, &unique))
        return NULL;
    if (take_strings(&queries, names) != 0 || take_strings(&docs, ids) != 0 ||
        (numbers != Py_None && PyObject_GetBuffer(numbers, &scores, PyBUF_SIMPLE) != 0))
        goto done;
    size_t rows = 0;
    if ((size_t)counts.len == size_of(&queries) * sizeof(int32_t))
        for (size_t i = 0; i < size_of(&queries); i++)
            rows += (size_t)((const int32_t *)counts.buf)[i];
    if ((size_t)counts.len != size_of(&queries) * sizeof(int32_t) || rows != size_of(&docs) ||
        rows >= INT32_MAX || (scores.obj && (size_t)scores.len != rows * sizeof(double))) {
        PyErr_SetString(PyExc_ValueError, "the columns do not belong together");
        goto done;
    }
    Block block = {.drawing.index = (Index *)self, .drawing.unique = unique};
    Py_BEGIN_ALLOW_THREADS
    block.seen = calloc(size_of(&block.drawing.index->queries) + 1, 1);
    if (block.seen != NULL)
        outcome = draw_columns(&block, &queries, counts.buf, &docs, scores.obj ? scores.buf : NULL,
                               narrow);
    Py_END_ALLOW_THREADS
    result = drawn(&block, outcome);
done:
    if (scores.obj)
        PyBuffer_Release(&scores);
    PyBuffer_Release(&counts);
    free_strings(&queries);
    free_strings(&docs);
    return result;
}

/* Spread the lines of a block by query: parts of equal numbers of queries, and one of the rest. */
static PyObject *index_split(PyObject *self, PyObject *args)
{
    Py_buffer data; /* a block of a file: much less than 2 GB, unless a line is that long */
    int parts;
    if (!PyArg_ParseTuple(args, "y*i", &data, &parts))
        return NULL;
    const Index *index = (Index *)self;
    const char *at = data.buf, *end = at + data.len;
    char *bytes = malloc((size_t)data.len + 1);
    size_t *first = calloc((size_t)parts + 2, sizeof *first);
    Numbers where = {0}; /* part, begin and end of stretches of lines */
    int failed = bytes == NULL || first == NULL;
    Py_BEGIN_ALLOW_THREADS
    Text words[WORDS], present = {NULL, 0};
    int64_t number = -1, part = parts;
    const char *begin = at;
    while (!failed && next_line(&at, end, words)) {
        if (!same_text(words[0], present)) {
            number = find_query(index, words[0], number + 1);
            present = words[0];
            part = number < 0 ? parts : number * parts / (int64_t)size_of(&index->queries);
        }
        failed |= push(&where, part) | push(&where, begin - (const char *)data.buf) |
                  push(&where, at - (const char *)data.buf);
        if (!failed)
            first[part + 1] += (size_t)(at - begin);
        begin = at;
    }
    for (int i = 0; !failed && i <= parts; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; !failed && i < where.count; i += 3) { /* `first` becomes the end */
        size_t size = (size_t)(where.data[i + 2] - where.data[i + 1]);
        memcpy(bytes + first[where.data[i]], (const char *)data.buf + where.data[i + 1], size);
        first[where.data[i]] += size;
    }
    Py_END_ALLOW_THREADS
    PyObject *result = failed ? PyErr_NoMemory() : PyList_New(parts + 1);
    for (int i = 0; result && i <= parts; i++) {
        size_t from = i ? first[i - 1] : 0;
        PyObject *piece = PyBytes_FromStringAndSize(bytes + from, (Py_ssize_t)(first[i] - from));
        if (piece == NULL || PyList_SetItem(result, i, piece) != 0)
            Py_CLEAR(result);
    }
    free(bytes);
    free(first);
    free(where.data);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *index_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kw))
{
    PyObject *queries, *docs, *first, *item, *judged;
    if (!PyArg_ParseTuple(args, "OOOOO", &queries, &docs, &first, &item, &judged))
        return NULL;
    allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
    Index *index = (Index *)allocate(type, 0);
    if (index == NULL)
        return NULL;
    if (take_strings(&index->queries, queries) != 0 || take_strings(&index->docs, docs) != 0 ||
        PyObject_GetBuffer(first, &index->first, PyBUF_SIMPLE) != 0 ||
        PyObject_GetBuffer(item, &index->item, PyBUF_SIMPLE) != 0 ||
        PyObject_GetBuffer(judged, &index->judged, PyBUF_SIMPLE) != 0)
        goto failed;
    if (index->first.len != (Py_ssize_t)((size_of(&index->queries) + 1) * sizeof(int64_t)) ||
        index->item.len != (Py_ssize_t)(size_of(&index->docs) * sizeof(int32_t)) ||
        size_of(&index->docs) >= INT32_MAX || size_of(&index->queries) >= INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
        goto failed;
    }
    if (make_table(&index->table, size_of(&index->queries)) != 0) {
        PyErr_NoMemory();
        goto failed;
    }
    size_t piece = 0;
    for (size_t i = 0; i < size_of(&index->queries); i++) {
        size_t slot = hash_text(text_at(&index->queries, i, &piece)) & (index->table.slots - 1);
        while (index->table.numbers[slot])
            slot = (slot + 1) & (index->table.slots - 1);
        index->table.numbers[slot] = (uint32_t)i + 1;
    }
    return (PyObject *)index;
failed:
    Py_DECREF(index);
    return NULL;
}

static void index_free(PyObject *self)
{
    Index *index = (Index *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_buffer *buffers[] = {&index->first, &index->item, &index->judged};
    for (int i = 0; i < 3; i++)
        if (buffers[i]->obj)
            PyBuffer_Release(buffers[i]);
    free_strings(&index->queries);
    free_strings(&index->docs);
    free(index->table.numbers);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef INDEX_METHODS[] = {
    {"draw", index_draw, METH_VARARGS, "Draw the rows of a block of a run; None: it is not plain."},
    {"draw_records", index_draw_records, METH_VARARGS, "Draw a block of lines of JSON."},
    {"draw_columns", index_draw_columns, METH_VARARGS, "Draw lists that stand in columns."},
    {"split", index_split, METH_VARARGS, "Spread the lines of a block by query."},
    {0},
};

static PyType_Slot INDEX_SLOTS[] = {
    {Py_tp_doc, "The queries of a gold and the documents of each."},
    {Py_tp_new, index_new},
    {Py_tp_methods, INDEX_METHODS},
    {Py_tp_dealloc, index_free},
    {0},
};

static PyType_Spec INDEX = {"findwell.io.native._kernel.Index", sizeof(Index), 0, Py_TPFLAGS_DEFAULT,
                            INDEX_SLOTS};

/* --- a block of judgements ------------------------------------------------------------------ */

static int read_judgements(Drawing *d, Lists *found, const char *at, const char *end)
{
    Text words[WORDS], present = {NULL, 0};
    double grade;
    int count, outcome;
    while ((count = next_line(&at, end, words)) != 0) {
        if (count != 4 || !read_number(words[3], &grade) || begins_blank(words[2]) ||
            begins_blank(words[0]))
            return DECLINED;
        if (!same_text(words[0], present)) {
            if (present.at && (outcome = end_judgements(d, found)) != PLAIN)
                return outcome;
            present = words[0];
            if ((outcome = begin_query(found, present)) != PLAIN)
                return outcome;
        }
        if (found->iteration.at == NULL)
            found->iteration = words[1];
        if (!same_text(found->iteration, words[1]))
            return DECLINED;
        if (add_row(d, words[2], grade) != PLAIN)
            return FAILED;
    }
    return present.at ? end_judgements(d, found) : PLAIN;
}

static int read_records(Drawing *d, Lists *found, Json *json)
{
    Text query;
    int state, outcome;
    while ((state = next_record(json, d, &query, 0)) > 0)
        if ((outcome = begin_query(found, query)) != PLAIN ||
            (outcome = end_judgements(d, found)) != PLAIN)
            return outcome;
    return state == 0 ? PLAIN : state == -1 ? DECLINED : FAILED;
}

/* Read a block of judgements: of TREC, or lines of JSON with a field of ids. */
static PyObject *read_gold(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    const char *field = NULL;
    int outcome = DECLINED;
    if (!PyArg_ParseTuple(args, "y*|z", &data, &field))
        return NULL;
    if (data.len >= INT32_MAX) {
        PyBuffer_Release(&data);
        return Py_NewRef(Py_None);
    }
    const char *begin = data.buf, *end = begin + data.len;
    Drawing drawing = {0};
    Lists found = {0};
    Py_BEGIN_ALLOW_THREADS
    if (is_plain(begin, end)) {
        Json json = {begin, end, {field, field ? strlen(field) : 0}};
        outcome = field ? read_records(&drawing, &found, &json)
                        : read_judgements(&drawing, &found, begin, end);
    }
    Py_END_ALLOW_THREADS
    Text iteration = found.iteration;
    PyObject *result = NULL;
    if (outcome == PLAIN)
        result = Py_BuildValue("(Ny#)", columns_tuple(&found), iteration.at,
                               (Py_ssize_t)iteration.size);
    else
        result = outcome == FAILED ? PyErr_NoMemory() : Py_NewRef(Py_None);
    free_drawing(&drawing);
    free_lists(&found);
    PyBuffer_Release(&data);
    return result;
}

/* Return where the lines of the last query of a block begin. */
static PyObject *last_query(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "y*", &data))
        return NULL;
    const char *begin = data.buf, *end = begin + data.len, *cut = end, *line = end;
    Text last = {NULL, 0}, words[WORDS];
    while (line > begin) {
        const char *stop = line - 1; /* the newline of the line before, or its last character */
        const char *start = stop;
        while (start > begin && start[-1] != '\n')
            start--;
        const char *at = start;
        if (next_line(&at, line, words)) {
            if (last.at == NULL)
                last = words[0];
            if (!same_text(last, words[0]))
                break;
            cut = start;
        }
        line = start;
    }
    PyBuffer_Release(&data);
    return PyLong_FromSsize_t(last.at == NULL ? 0 : cut - begin);
}

static PyMethodDef METHODS[] = {
    {"read_gold", read_gold, METH_VARARGS,
     "Read a block of judgements, the highest grade of each query first; None: it is not plain."},
    {"pack", pack, METH_VARARGS, "Pack lists by query into columns; None: they are not plain."},
    {"last_query", last_query, METH_VARARGS, "Return where the lines of the last query begin."},
    {0},
};

/* Raised with every change of what Python sees, so that a kernel built earlier is not used. */
enum { INTERFACE = 6 };

static int execute(PyObject *module)
{
    uintptr_t address = (uintptr_t)module;
    seed = (uint64_t)address * 0x9E3779B97F4A7C15u;
    column_type = (PyTypeObject *)PyType_FromSpec(&COLUMN);
    memory_type = (PyTypeObject *)PyType_FromSpec(&MEMORY);
    PyObject *index = PyType_FromSpec(&INDEX);
    if (column_type == NULL || memory_type == NULL || index == NULL)
        return -1;
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) |
           PyModule_AddObjectRef(module, "Index", index);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, execute}, {0}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel",
    .m_doc = "Runs and judgements, read, ranked and matched in one pass.",
    .m_methods = METHODS, .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&MODULE); }
