"""Settings of the documentation site, which `python -m docs.site` builds offline."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import odelab

project = "odelab"
copyright = "the odelab developers"
version = release = odelab.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "excerpts",
]
root_doc = "index"
exclude_patterns = ["gallery/*"]
nitpicky = True
# names of other libraries in signatures, for which there is nothing to link to offline
nitpick_ignore_regex = [(r"py:.*", r"(?!(odelab|netbridge)\.).*"), (r"py:.*", r"(odelab|netbridge)\.[a-z_]+\..*")]
suppress_warnings = ["config.cache"]

autodoc_typehints = "none"  # the docstrings say what each argument is
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"  # beside a page there is room for the last name alone
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "odelab"
html_show_sourcelink = False
html_static_path = ["_static"]
html_sidebars = {name: [] for name in ("papers", "search", "genindex")}  # nothing stands beside these
html_css_files = ["house.css"]
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
}
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "figures",
    "filename_pattern": r"/plot_",
    "image_scrapers": ("docstrings.drawn",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 60,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
}
