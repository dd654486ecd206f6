"""Settings of the documentation site, built by `make docs`."""

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "workflow"))

import plumbline  # noqa: E402

project = "plumbline"
author = "The plumbline authors"
copyright = author
version = release = plumbline.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["images"]
# Backquotes in docstrings are code.
default_role = "code"
myst_enable_extensions = ["attrs_block", "dollarmath"]
myst_heading_anchors = 4
# Notebooks are executed by the tests, which compare the outputs that are stored in them.
nb_execution_mode = "off"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = f"plumbline {version}"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
