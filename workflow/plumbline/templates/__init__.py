"""Template files that `plumbline new` copies under a new name: an object of each kind and its test."""
