"""karat's own choices: the defaults of `Policy`, each explained in docs/policies.md."""

from karat.dialects.dialect import Dialect, register_dialect

KARAT = register_dialect(
    Dialect("karat", "principled: nothing is dropped in silence, no measure can pass 1")
)
