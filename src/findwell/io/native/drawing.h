/* The rows of one query: ranked, and matched with the documents of the gold. */
#ifndef FINDWELL_DRAWING_H
#define FINDWELL_DRAWING_H

#include "strings.h"

/* --- sets of names ------------------------------------------------------------------------- */

/* Numbers of names, by open addressing; `slots` is a power of two, 0 means empty. */
typedef struct {
    uint32_t *numbers;
    size_t slots;
} Table;

static int make_table(Table *table, size_t names)
{
    table->slots = 16;
    while (table->slots < names * 2)
        table->slots *= 2;
    table->numbers = calloc(table->slots, sizeof *table->numbers);
    return table->numbers ? 0 : -1;
}

/* --- rows of one query --------------------------------------------------------------------- */

typedef struct {
    Text doc;
    uint64_t hash;
    double score;
} Row;

/* Whether a row belongs behind another: by score, then perhaps by id, both descending. */
static int behind(const Row *a, const Row *b, int by_id)
{
    if (a->score != b->score)
        return a->score < b->score;
    return by_id && compare_texts(a->doc, b->doc) < 0;
}

/* Merge sort: stable, and no input makes it slow. */
static void sort_rows(Row *rows, Row *spare, size_t count, int by_id)
{
    for (size_t i = 0; i < count; i += 8) /* short stretches by insertion */
        for (size_t j = i + 1; j < i + 8 && j < count; j++) {
            Row row = rows[j];
            size_t k = j;
            for (; k > i && behind(&rows[k - 1], &row, by_id); k--)
                rows[k] = rows[k - 1];
            rows[k] = row;
        }
    Row *from = rows, *to = spare;
    for (size_t width = 8; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width) {
            size_t left = i, middle = i + width < count ? i + width : count;
            size_t right = middle, end = i + 2 * width < count ? i + 2 * width : count;
            for (size_t k = i; k < end; k++)
                if (left < middle && (right == end || !behind(&from[left], &from[right], by_id)))
                    to[k] = from[left++];
                else
                    to[k] = from[right++];
        }
        Row *swap = from;
        from = to;
        to = swap;
    }
    if (from != rows)
        memcpy(rows, from, count * sizeof *rows);
}

/* The gold: its queries by name, and the documents of each query, which stand together. */
typedef struct {
    PyObject_HEAD
    Strings queries, docs;
    Py_buffer first;  /* int64 per query and one more: where its documents begin */
    Py_buffer item;   /* int32 per document */
    Py_buffer judged; /* bool per item */
    Table table;
} Index;

static int64_t find_query(const Index *index, Text name, int64_t guess)
{
    /* in the order of the gold, the next one is the likely one */
    size_t piece = 0;
    if (guess < (int64_t)size_of(&index->queries) &&
        same_text(text_at(&index->queries, (size_t)guess, &piece), name))
        return guess;
    size_t mask = index->table.slots - 1;
    for (size_t slot = hash_text(name) & mask; index->table.numbers[slot]; slot = (slot + 1) & mask) {
        uint32_t number = index->table.numbers[slot] - 1;
        if (same_text(text_at(&index->queries, number, &piece), name))
            return number;
    }
    return -1;
}

/* What is drawn from a block, and what is needed while it is. */
enum { PLAIN, DECLINED, FAILED };

enum { QUERY, RETRIEVED, EDGE_QUERY, EDGE_RANK, EDGE_ITEM, UNIT_QUERY, UNIT_RANK, TIE_QUERY,
       TIE_FIRST, TIE_LAST, UNSORTED, ASKED, ARRAYS };

typedef struct {
    const Index *index;
    Row *rows, *spare; /* of the present query; `spare` is for sorting, and as long */
    size_t count, room;
    size_t piece;         /* of the gold's documents: where the last one was found */
    Table table;          /* the rows by document; values are row + 1 */
    uint64_t *members;    /* the documents of the gold, where they are looked up */
    size_t places;
    Numbers found; /* member and row in turns */
    int unique;    /* whether no document can occur twice in a query */
    Numbers out[ARRAYS];
} Drawing;

static void free_drawing(Drawing *d)
{
    free(d->rows);
    free(d->spare);
    free(d->table.numbers);
    free(d->members);
    free(d->found.data);
    for (int i = 0; i < ARRAYS; i++)
        free(d->out[i].data);
}

static int add_row(Drawing *d, Text doc, double score)
{
    if (RARELY(d->count == d->room)) {
        size_t room = d->room ? d->room * 2 : 256;
        Row *rows = realloc(d->rows, room * sizeof *rows);
        if (rows == NULL)
            return FAILED;
        d->rows = rows;
        Row *spare = realloc(d->spare, room * sizeof *spare);
        if (spare == NULL)
            return FAILED;
        d->spare = spare;
        free(d->table.numbers);
        if (make_table(&d->table, room) != 0)
            return FAILED;
        d->room = room;
    }
    Row *row = &d->rows[d->count++];
    row->doc = doc;
    row->hash = hash_text(doc);
    row->score = score;
    return PLAIN;
}

/* Return the slot of a document among the rows; its number is 0 if there is none. */
static uint32_t *slot_of(const Drawing *d, Text doc, uint64_t hash, size_t mask)
{
    for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
        uint32_t number = d->table.numbers[slot];
        if (!number ||
            (d->rows[number - 1].hash == hash && same_text(d->rows[number - 1].doc, doc)))
            return &d->table.numbers[slot];
    }
}

/* Enter the rows of a query into the table, and return its mask; 0 if a document occurs twice. */
static size_t number_rows(Drawing *d)
{
    size_t slots = 16; /* only as many as these rows need, so that they stay in the cache */
    while (slots < d->count * 2)
        slots *= 2;
    memset(d->table.numbers, 0, slots * sizeof *d->table.numbers);
    for (size_t i = 0; i < d->count; i++) {
        uint32_t *slot = slot_of(d, d->rows[i].doc, d->rows[i].hash, slots - 1);
        if (RARELY(*slot))
            return 0;
        *slot = (uint32_t)i + 1;
    }
    return slots - 1;
}

static int by_rank(const void *a, const void *b)
{
    const int32_t *x = a, *y = b; /* member, row: by row, then by member */
    return x[1] != y[1] ? (x[1] > y[1]) - (x[1] < y[1]) : (x[0] > y[0]) - (x[0] < y[0]);
}

/* Find the documents of a query in the gold among its rows, in the order of the rows. */
static int find_rows(Drawing *d, int64_t query)
{
    const int64_t *first = d->index->first.buf;
    int failed = 0;
    size_t mask = number_rows(d);
    if (!mask)
        return DECLINED;
    for (int64_t member = first[query]; member < first[query + 1]; member++) {
        Text doc = text_at(&d->index->docs, (size_t)member, &d->piece);
        uint32_t number = *slot_of(d, doc, hash_text(doc), mask);
        if (number)
            failed |= push(&d->found, member) | push(&d->found, number - 1);
    }
    if (d->found.count)
        qsort(d->found.data, d->found.count / 2, 2 * sizeof *d->found.data, by_rank);
    return failed ? FAILED : PLAIN;
}

/* The same where no row occurs twice: the rows are looked up among the few documents of the gold. */
static int find_members(Drawing *d, int64_t query)
{
    const int64_t *first = d->index->first.buf;
    size_t members = (size_t)(first[query + 1] - first[query]), slots = 16;
    int failed = 0;
    while (slots < members * 8) /* so many that most rows find none taken */
        slots *= 2;
    if (slots > d->places) {
        free(d->members);
        d->places = 0;
        d->members = malloc(slots * sizeof *d->members);
        if (d->members == NULL)
            return FAILED;
        d->places = slots;
    }
    /* half of the hash, which tells most others apart, and number + 1 */
    uint64_t *numbers = d->members, half = (uint64_t)UINT32_MAX << 32;
    memset(numbers, 0, slots * sizeof *numbers);
    for (size_t i = 0; i < members; i++) {
        uint64_t hash = hash_text(text_at(&d->index->docs, (size_t)first[query] + i, &d->piece));
        size_t slot = hash & (slots - 1);
        while (numbers[slot])
            slot = (slot + 1) & (slots - 1);
        numbers[slot] = (hash & half) | (i + 1);
    }
    for (size_t row = 0; row < d->count; row++) {
        uint64_t hash = d->rows[row].hash, number;
        for (size_t slot = hash & (slots - 1); (number = numbers[slot]);
             slot = (slot + 1) & (slots - 1)) {
            if (((number ^ hash) & half) != 0)
                continue;
            int64_t member = first[query] + (int64_t)(number & ~half) - 1;
            if (same_text(text_at(&d->index->docs, (size_t)member, &d->piece), d->rows[row].doc))
                failed |= push(&d->found, member) | push(&d->found, (int64_t)row);
        }
    }
    return failed ? FAILED : PLAIN;
}

/* Rank and match the rows of one query. */
static int draw_query(Drawing *d, int64_t query)
{
    const Index *index = d->index;
    Row *rows = d->rows;
    size_t count = d->count;
    int failed = 0, rising = 0, tied = 0;
    for (size_t i = 1; i < count; i++) {
        rising |= rows[i].score > rows[i - 1].score;
        tied |= rows[i].score == rows[i - 1].score;
    }
    if (rising) {
        failed |= push(&d->out[UNSORTED], query);
        tied = 1; /* not known before they are sorted */
    }
    if (rising || tied)
        sort_rows(rows, d->spare, count, 1);
    if (tied)
        for (size_t i = 0, j; i < count; i = j) {
            for (j = i + 1; j < count && rows[j].score == rows[i].score; j++)
                ;
            if (j - i > 1)
                failed |= push(&d->out[TIE_QUERY], query) |
                          push(&d->out[TIE_FIRST], (int64_t)i + 1) |
                          push(&d->out[TIE_LAST], (int64_t)j);
        }
    const int32_t *item = index->item.buf;
    const uint8_t *judged = index->judged.buf;
    d->found.count = 0;
    int outcome = d->unique ? find_members(d, query) : find_rows(d, query);
    if (outcome != PLAIN)
        return outcome;
    int64_t last = -1; /* the unit that was listed last */
    for (size_t i = 0; i < d->found.count; i += 2) {
        int64_t what = item[d->found.data[i]], rank = d->found.data[i + 1] + 1;
        failed |= push(&d->out[EDGE_QUERY], query) | push(&d->out[EDGE_RANK], rank) |
                  push(&d->out[EDGE_ITEM], what);
        if (judged[what] && rank != last) {
            failed |= push(&d->out[UNIT_QUERY], query) | push(&d->out[UNIT_RANK], rank);
            last = rank;
        }
    }
    failed |= push(&d->out[QUERY], query) | push(&d->out[RETRIEVED], (int64_t)count);
    d->count = 0;
    return failed ? FAILED : PLAIN;
}

/* --- names that the gold does not have, each once ------------------------------------------- */

typedef struct {
    Text *names;
    size_t count, room;
    Table table;
} Names;

static void free_names(Names *names)
{
    free(names->names);
    free(names->table.numbers);
}

static int add_name(Names *names, Text name)
{
    if (names->count == names->room) {
        size_t room = names->room ? names->room * 2 : 256;
        Text *grown = realloc(names->names, room * sizeof *grown);
        if (grown == NULL)
            return FAILED;
        names->names = grown;
        names->room = room;
        free(names->table.numbers);
        if (make_table(&names->table, room) != 0)
            return FAILED;
        for (size_t i = 0; i < names->count; i++) {
            size_t slot = hash_text(grown[i]) & (names->table.slots - 1);
            while (names->table.numbers[slot])
                slot = (slot + 1) & (names->table.slots - 1);
            names->table.numbers[slot] = (uint32_t)i + 1;
        }
    }
    size_t slot = hash_text(name) & (names->table.slots - 1);
    for (; names->table.numbers[slot]; slot = (slot + 1) & (names->table.slots - 1))
        if (same_text(names->names[names->table.numbers[slot] - 1], name))
            return PLAIN;
    names->table.numbers[slot] = (uint32_t)names->count + 1;
    names->names[names->count++] = name;
    return PLAIN;
}

static PyObject *as_list(const Names *names)
{
    PyObject *list = PyList_New((Py_ssize_t)names->count);
    for (size_t i = 0; list && i < names->count; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(names->names[i].at, (Py_ssize_t)names->names[i].size,
                                              "strict");
        if (name == NULL || PyList_SetItem(list, (Py_ssize_t)i, name) != 0)
            Py_CLEAR(list);
    }
    return list;
}

#endif
