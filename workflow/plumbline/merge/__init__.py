"""`plumbline merge`: join runs of parts of one study."""
