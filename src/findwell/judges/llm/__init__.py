"""The judge that asks a language model: what it is shown, what it may answer."""
