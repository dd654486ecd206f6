"""Files to begin with, which `plumbline new` copies under the user's name: an object of each kind and its test."""
