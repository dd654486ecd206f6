"""The config of a study: its schema, its resolution to typed options, and its valid runs."""
