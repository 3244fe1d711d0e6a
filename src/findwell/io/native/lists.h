/* Lists of documents by query, with numbers or without: from Python objects, and from lines of JSON.
 *
 * Both become columns, or are drawn as they are read. Nothing here calls code of others: only exact
 * dicts, lists, texts and numbers are looked at, so that no object changes meanwhile. */
#ifndef FINDWELL_LISTS_H
#define FINDWELL_LISTS_H

#include "drawing.h"

typedef struct {
    Names queries;
    Text *docs;
    double *numbers;
    size_t count, room;
    Numbers counts;
    Text iteration;
} Lists;

static void free_lists(Lists *lists)
{
    free_names(&lists->queries);
    free(lists->docs);
    free(lists->numbers);
    free(lists->counts.data);
    memset(lists, 0, sizeof *lists);
}

static int append(Lists *lists, Text doc, double number)
{
    if (RARELY(lists->count == lists->room)) {
        size_t room = lists->room ? lists->room * 2 : 4096;
        Text *docs = realloc(lists->docs, room * sizeof *docs);
        if (docs == NULL)
            return FAILED;
        lists->docs = docs;
        double *numbers = realloc(lists->numbers, room * sizeof *numbers);
        if (numbers == NULL)
            return FAILED;
        lists->numbers = numbers;
        lists->room = room;
    }
    lists->docs[lists->count] = doc;
    lists->numbers[lists->count++] = number;
    return PLAIN;
}

/* Begin a query; it is declined if it was there before. */
static int begin_query(Lists *lists, Text query)
{
    size_t before = lists->queries.count;
    if (add_name(&lists->queries, query) != PLAIN)
        return FAILED;
    return lists->queries.count == before ? DECLINED : PLAIN;
}

/* Sort the judgements of a query: the highest grade comes first. */
static void best_first(Drawing *d)
{
    for (size_t i = 1; i < d->count; i++)
        if (d->rows[i].score > d->rows[i - 1].score) {
            sort_rows(d->rows, d->spare, d->count, 0);
            break;
        }
}

/* End a query whose rows are judgements; it is declined if a document occurs twice. */
static int end_judgements(Drawing *d, Lists *lists)
{
    if (d->count && !number_rows(d))
        return DECLINED;
    best_first(d);
    for (size_t i = 0; i < d->count; i++)
        if (append(lists, d->rows[i].doc, d->rows[i].score) != PLAIN)
            return FAILED;
    int failed = push(&lists->counts, (int64_t)d->count);
    d->count = 0;
    return failed ? FAILED : PLAIN;
}

static int may_be_blank(Text id)
{
    return !id.size || (uint8_t)*id.at <= ' ' || begins_blank(id);
}

/* --- columns of lists ----------------------------------------------------------------------- */

typedef struct {
    Made *queries, *docs;
    Numbers counts;
    double *numbers;
    size_t count;
} Columns;

static void free_columns(Columns *columns)
{
    free_made(columns->queries);
    free_made(columns->docs);
    free(columns->counts.data);
    free(columns->numbers);
    memset(columns, 0, sizeof *columns);
}

static void *copy_of(const void *data, size_t size)
{
    void *copy = malloc(size ? size : 1);
    return copy && size ? memcpy(copy, data, size) : copy;
}

/* Turn lists into columns, which hold their own copies; the lists are empty then. */
static int to_columns(Lists *lists, Columns *columns)
{
    columns->queries = make_strings(lists->queries.names, lists->queries.count);
    columns->docs = make_strings(lists->docs, lists->count);
    columns->counts = lists->counts;
    columns->counts.data = copy_of(lists->counts.data, lists->counts.count * sizeof(int32_t));
    columns->numbers = copy_of(lists->numbers, lists->count * sizeof(double));
    columns->count = lists->count;
    lists->count = lists->counts.count = 0; /* their memory serves the next piece */
    clear_names(&lists->queries);
    if (columns->queries && columns->docs && columns->counts.data && columns->numbers)
        return PLAIN;
    free_columns(columns);
    return FAILED;
}

/* Return (queries, how many documents each has, documents, numbers). */
static PyObject *columns_tuple(Columns *columns)
{
    PyObject *result = Py_BuildValue(
        "(NNNN)", new_column(columns->queries), as_bytes(&columns->counts),
        new_column(columns->docs),
        PyBytes_FromStringAndSize((const char *)columns->numbers,
                                  (Py_ssize_t)(columns->count * sizeof *columns->numbers)));
    columns->queries = columns->docs = NULL; /* they belong to the tuple, or are freed with it */
    free_columns(columns);
    return result;
}

/* --- Python objects ------------------------------------------------------------------------- */

enum { PIECE_ROWS = 1 << 17, PIECE_BYTES = 1 << 28 };

typedef struct {
    Columns *pieces;
    size_t count, bytes;
    Lists lists;
    Drawing drawing; /* to sort judgements */
    int judged, listed;
} Packing;

static int take_id(PyObject *object, Text *id)
{
    Py_ssize_t size;
    if (!PyUnicode_CheckExact(object))
        return DECLINED;
    id->at = PyUnicode_AsUTF8AndSize(object, &size);
    if (id->at == NULL) { /* half of a surrogate pair */
        PyErr_Clear();
        return DECLINED;
    }
    id->size = (size_t)size;
    return may_be_blank(*id) ? DECLINED : PLAIN;
}

static int take_number(PyObject *object, double *number)
{
    if (Py_IS_TYPE(object, &PyFloat_Type))
        *number = PyFloat_AsDouble(object);
    else if (Py_IS_TYPE(object, &PyLong_Type) || PyLong_Check(object)) {
        *number = PyLong_AsDouble(object);
        if (*number == -1.0 && PyErr_Occurred()) { /* too large */
            PyErr_Clear();
            return DECLINED;
        }
    }
    else if (PyFloat_Check(object)) /* of NumPy */
        *number = PyFloat_AsDouble(object);
    else
        return DECLINED;
    return isfinite(*number) ? PLAIN : DECLINED;
}

static int pack_row(Packing *p, PyObject *object, double number)
{
    Text doc;
    if (take_id(object, &doc) != PLAIN)
        return DECLINED;
    p->bytes += doc.size;
    return p->judged && p->listed ? add_row(&p->drawing, doc, number)
                                  : append(&p->lists, doc, number);
}

static int end_piece(Packing *p)
{
    Columns *pieces = realloc(p->pieces, (p->count + 1) * sizeof *pieces);
    if (pieces == NULL)
        return FAILED;
    p->pieces = pieces;
    memset(&pieces[p->count], 0, sizeof *pieces);
    p->bytes = 0;
    return to_columns(&p->lists, &pieces[p->count++]);
}

/* Sort the judgements that were appended last; no document is among them twice. */
static int sort_last(Packing *p, size_t first)
{
    Lists *lists = &p->lists;
    Drawing *d = &p->drawing;
    size_t at = first + 1;
    for (; at < lists->count && at - first < 64; at++) { /* short lists by insertion */
        Text doc = lists->docs[at];
        double number = lists->numbers[at];
        size_t to = at;
        for (; to > first && lists->numbers[to - 1] < number; to--) {
            lists->docs[to] = lists->docs[to - 1];
            lists->numbers[to] = lists->numbers[to - 1];
        }
        lists->docs[to] = doc;
        lists->numbers[to] = number;
    }
    while (at < lists->count && lists->numbers[at] <= lists->numbers[at - 1])
        at++;
    if (at >= lists->count)
        return PLAIN;
    for (at = first; at < lists->count; at++)
        if (add_row(d, lists->docs[at], lists->numbers[at]) != PLAIN)
            return FAILED;
    best_first(d);
    for (at = 0; at < d->count; at++) {
        lists->docs[first + at] = d->rows[at].doc;
        lists->numbers[first + at] = d->rows[at].score;
    }
    d->count = 0;
    return PLAIN;
}

static int pack_query(Packing *p, PyObject *key, PyObject *docs)
{
    PyObject *doc, *value;
    Text query = {NULL, 0};
    double number;
    int outcome = take_id(key, &query);
    if (outcome == PLAIN)
        outcome = begin_query(&p->lists, query);
    size_t before = p->lists.count;
    p->bytes += query.size;
    if (p->listed) {
        int is_list = PyList_CheckExact(docs);
        if (!is_list && !PyTuple_CheckExact(docs))
            return DECLINED;
        Py_ssize_t size = is_list ? PyList_Size(docs) : PyTuple_Size(docs);
        for (Py_ssize_t i = 0; i < size && outcome == PLAIN; i++)
            outcome = pack_row(p, is_list ? PyList_GetItem(docs, i) : PyTuple_GetItem(docs, i), 1.0);
    }
    else {
        Py_ssize_t at = 0;
        if (!PyDict_CheckExact(docs))
            return DECLINED;
        while (outcome == PLAIN && PyDict_Next(docs, &at, &doc, &value)) {
            outcome = take_number(value, &number);
            if (outcome == PLAIN)
                outcome = pack_row(p, doc, number);
        }
    }
    if (outcome == PLAIN && p->judged && p->listed)
        outcome = end_judgements(&p->drawing, &p->lists);
    else if (outcome == PLAIN) {
        outcome = p->judged ? sort_last(p, before) : PLAIN;
        if (push(&p->lists.counts, (int64_t)(p->lists.count - before)))
            outcome = FAILED;
    }
    if (outcome == PLAIN && p->bytes > INT32_MAX)
        outcome = DECLINED; /* a column could not hold it */
    if (outcome == PLAIN && (p->lists.count >= PIECE_ROWS || p->bytes >= PIECE_BYTES))
        outcome = end_piece(p);
    return outcome;
}

static int pack_objects(Packing *p, PyObject *data)
{
    PyObject *key, *docs;
    Py_ssize_t at = 0;
    int outcome = PLAIN, late = 0;
    while (outcome == PLAIN && PyDict_Next(data, &at, &key, &docs)) {
        if (!p->judged && !p->listed && PyDict_CheckExact(docs) && !PyDict_Size(docs))
            late = 1; /* queries without scores come last, as in the code in Python */
        else
            outcome = pack_query(p, key, docs);
    }
    at = 0;
    while (late && outcome == PLAIN && PyDict_Next(data, &at, &key, &docs))
        if (PyDict_CheckExact(docs) && !PyDict_Size(docs))
            outcome = pack_query(p, key, docs);
    return outcome == PLAIN && p->lists.queries.count ? end_piece(p) : outcome;
}

/* Pack {query: {doc: number}} or {query: [doc]} into columns, piece by piece of whole queries. */
static PyObject *pack(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *data, *result = NULL;
    Packing p = {0};
    if (!PyArg_ParseTuple(args, "Opp", &data, &p.listed, &p.judged))
        return NULL;
    int outcome = PyDict_CheckExact(data) ? pack_objects(&p, data) : DECLINED;
    if (outcome == FAILED)
        PyErr_NoMemory();
    else if (outcome == DECLINED)
        result = Py_NewRef(Py_None);
    else
        result = PyList_New((Py_ssize_t)p.count);
    for (size_t i = 0; i < p.count; i++) { /* Python may run code from here on: all is packed */
        PyObject *piece = NULL;
        if (outcome == PLAIN && result)
            piece = columns_tuple(&p.pieces[i]);
        else
            free_columns(&p.pieces[i]);
        if (outcome == PLAIN && result &&
            (piece == NULL || PyList_SetItem(result, (Py_ssize_t)i, piece) != 0))
            Py_CLEAR(result);
    }
    free(p.pieces);
    free_lists(&p.lists);
    free_drawing(&p.drawing);
    return result;
}

/* --- lines of JSON: {"query": "q1", FIELD: ["d1", "d2"]} -------------------------------------- */

typedef struct {
    const char *at, *end;
    Text field;
} Json;

static int next_mark(Json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
    return json->at < json->end ? *json->at : '\n';
}

/* Read a string without escapes. */
static int next_string(Json *json, Text *text)
{
    if (next_mark(json) != '"')
        return DECLINED;
    const char *p = ++json->at;
    while (p < json->end && *p != '"' && *p != '\\' && (uint8_t)*p >= ' ')
        p++;
    if (p >= json->end || *p != '"')
        return DECLINED;
    text->at = json->at;
    text->size = (size_t)(p - json->at);
    json->at = p + 1;
    return PLAIN;
}

static int expect(Json *json, char mark)
{
    if (next_mark(json) != mark)
        return DECLINED;
    json->at++;
    return PLAIN;
}

/* Read the ids of a list into the rows. */
static int next_list(Json *json, Drawing *d, int falling)
{
    Text doc;
    if (expect(json, '[') != PLAIN)
        return DECLINED;
    if (next_mark(json) == ']') {
        json->at++;
        return PLAIN;
    }
    for (;;) {
        if (next_string(json, &doc) != PLAIN || may_be_blank(doc))
            return DECLINED;
        if (add_row(d, doc, falling ? -(double)d->count : 1.0) != PLAIN)
            return FAILED;
        int mark = next_mark(json);
        json->at++;
        if (mark == ']')
            return PLAIN;
        if (mark != ',')
            return DECLINED;
    }
}

/* Read the next record; 0: the end; -1: it is not plain; -2: no memory. */
static int next_record(Json *json, Drawing *d, Text *query, int falling)
{
    Text key;
    int names = 0, lists = 0, outcome = PLAIN;
    while (next_mark(json) == '\n') {
        if (json->at >= json->end)
            return 0;
        json->at++;
    }
    if (expect(json, '{') != PLAIN)
        return -1;
    for (int i = 0; i < 2; i++) {
        if ((i && expect(json, ',') != PLAIN) || next_string(json, &key) != PLAIN ||
            expect(json, ':') != PLAIN)
            return -1;
        if (same_text(key, (Text){"query", 5})) {
            names++;
            outcome = next_string(json, query);
        }
        else if (same_text(key, json->field)) {
            lists++;
            outcome = next_list(json, d, falling);
        }
        else
            return -1;
        if (outcome != PLAIN)
            return outcome == FAILED ? -2 : -1;
    }
    if (names != 1 || lists != 1 || may_be_blank(*query) || expect(json, '}') != PLAIN ||
        next_mark(json) != '\n')
        return -1;
    return 1;
}

#endif
