"""How far a judge agrees with people: measured, kept, cited."""
