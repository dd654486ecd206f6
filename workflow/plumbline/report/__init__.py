"""What the pages of the report share: the site, its templates, tables and findings."""
