"""The published studies: their numbers and quirks, next to ours."""
