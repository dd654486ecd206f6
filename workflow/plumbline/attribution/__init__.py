"""Importance measures, one short module for each family."""
