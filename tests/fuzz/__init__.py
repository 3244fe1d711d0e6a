"""Files of every format that findwell reads, spoilt in many ways, and what must hold of each.

    originals   whole files, and commands that read them
    spoiling    ways to spoil a file, chosen by a seeded generator
    cases       (name, files, command), the same for the same seed
    running     runs a case in this process: exit code, stdout, stderr
    checking    what is wrong with an outcome: a crash, no file, no line, no fix

`python -m tests.fuzz --seed 1 --count 500` runs some and lists what is wrong.
"""
