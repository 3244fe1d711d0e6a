-- What every annotator says now about every pair, in the order of time.
SELECT query.query, pair.doc, state.grade, state.annotator, state.time,
    CASE WHEN state.note <> '' THEN state.note ELSE coalesce(noted.note, '') END,
    state.start, state."end", state.probability, state.stratum, state.design,
    CASE state.kind WHEN 'label' THEN 'labelled' WHEN 'skip' THEN 'skipped'
        WHEN 'adjudicate' THEN 'adjudicated' ELSE 'unsure' END,
    state.subtopic, state.probability,
    CASE WHEN pair.design = 'sample' AND pair.place < (
        SELECT coalesce(min(place), 9e18) FROM pair WHERE design = 'sample'
        AND place IS NOT NULL AND number NOT IN (SELECT pair FROM state)
    ) THEN pair.stratum END
FROM state JOIN pair ON pair.number = state.pair JOIN query ON query.number = pair.query
LEFT JOIN (  -- the last note of each annotator: SQLite takes it from the row of the maximum
    SELECT pair, annotator, note, max(number) FROM live WHERE kind = 'note'
    GROUP BY pair, annotator
) AS noted ON noted.pair = state.pair AND noted.annotator = state.annotator
ORDER BY state.number
