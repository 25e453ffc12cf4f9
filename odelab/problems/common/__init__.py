"""What problems of the catalogue have in common: checked numbers at their doors, and tables of end values.

The problems themselves are in the other files and folders of `odelab.problems`."""
