-- The tables of a database of labels, layout 1: events are only added.
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE query (
    number INTEGER PRIMARY KEY, query TEXT NOT NULL UNIQUE, question TEXT NOT NULL, about TEXT
);
CREATE TABLE run (number INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE pair (
    number INTEGER PRIMARY KEY, query INTEGER NOT NULL REFERENCES query (number),
    doc TEXT NOT NULL, text TEXT NOT NULL, source TEXT, start INTEGER, "end" INTEGER,
    judge REAL, quote TEXT, design TEXT NOT NULL, stratum TEXT, probability REAL, place INTEGER,
    UNIQUE (query, doc)
);
CREATE TABLE rank (
    pair INTEGER NOT NULL REFERENCES pair (number), run INTEGER NOT NULL REFERENCES run (number),
    rank INTEGER NOT NULL, score REAL, PRIMARY KEY (pair, run)
) WITHOUT ROWID;
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, annotator TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('label', 'skip', 'unsure', 'note', 'adjudicate', 'undo')),
    pair INTEGER REFERENCES pair (number), subtopic TEXT NOT NULL DEFAULT '',
    grade REAL, note TEXT NOT NULL DEFAULT '', start INTEGER, "end" INTEGER,
    probability REAL, stratum TEXT, design TEXT, undoes INTEGER UNIQUE REFERENCES event (number)
);
CREATE INDEX event_pair ON event (pair);
CREATE INDEX event_annotator ON event (annotator);
CREATE TABLE guideline (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, annotator TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE offer (annotator TEXT PRIMARY KEY, pair INTEGER NOT NULL, time REAL NOT NULL);
CREATE TRIGGER event_stays BEFORE DELETE ON event
BEGIN SELECT raise(ABORT, 'labels are never deleted'); END;
CREATE TRIGGER event_is_fixed BEFORE UPDATE ON event
BEGIN SELECT raise(ABORT, 'labels are never changed'); END;
CREATE VIEW live AS
    SELECT * FROM event
    WHERE kind <> 'undo' AND number NOT IN (SELECT undoes FROM event WHERE undoes IS NOT NULL);
CREATE VIEW state AS
    SELECT * FROM live WHERE number IN (
        SELECT max(number) FROM live WHERE kind <> 'note'
        GROUP BY pair, subtopic, annotator, kind = 'adjudicate'
    )
