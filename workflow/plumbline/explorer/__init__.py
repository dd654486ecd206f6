"""The data of the report's explorer of single instances."""
