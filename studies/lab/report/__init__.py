"""What the page of a study is made of: the strip of claims, charts that answer, data of figures, templates, the index.

Nothing here measures or judges, and nothing imports from `studies.lab`: these modules turn findings and figures into
plain values, and plain values into text. The page itself, which studies write to, is `studies.lab.page`.
"""
