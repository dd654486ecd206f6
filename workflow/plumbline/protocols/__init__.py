"""One folder for each protocol: scores, schemas, table, figures, page and criteria."""
