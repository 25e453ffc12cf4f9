"""The documentation: pages in Markdown, figures of the gallery with the lines that draw them, and the site of both.

It is not installed; what the pages describe is in `odelab`, `netbridge` and `studies`."""
