"""An oracle of our own: a study's numbers recomputed plainly and slowly from what it has stored.

Nothing here imports the library, so that a fault of it cannot hide behind itself.
"""
