"""trec_eval, the reference program of TREC: version 10, and 9 where it differs.

Quirks that the dialects keep:

- a query without a relevant document scores 0 and counts in the mean;
- a query of the judgements that the run lacks stops version 10 (say `missing="zero"` for its
  option -c), while version 9 averages over the queries that both have;
- a document retrieved twice for a query is an error;
- grades are integers;
- version 9 compares scores as 32-bit floats, so that close scores tie and the doc id decides.
"""

from karat.align import Policy
from karat.dialects.dialect import Dialect, register_dialect

TREC_EVAL = register_dialect(
    Dialect(
        "trec_eval",
        "trec_eval 10",
        Policy(duplicates="error", missing="error", no_relevant="zero", grades="integer"),
    )
)

TREC_EVAL_9 = register_dialect(
    Dialect(
        "trec_eval-9",
        "trec_eval 9: scores compared as 32-bit floats, missing queries left out",
        Policy(
            scores="float32",
            duplicates="error",
            missing="skip",
            no_relevant="zero",
            grades="integer",
        ),
    )
)
