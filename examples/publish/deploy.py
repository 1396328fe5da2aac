"""A step that writes a page to the folder of a web server and emits an event.

An article with `"busy": 2` finds the web server busy twice, to show retries.
"""

import json
import os
import pathlib
import sys
import tempfile

step = json.load(sys.stdin)
article, order = step["value"], step["order"]

attempt = int(os.environ["POINTSMAN_ATTEMPT"])
if attempt <= article.get("busy", 0):
    print("the web server is busy", file=sys.stderr)
    sys.exit(3)

site_folder = pathlib.Path(tempfile.gettempdir()) / "pointsman-site"
site_folder.mkdir(exist_ok=True)
# An order's id contains only letters, digits, `.`, `_` and `-`, so it can be used as a file name.
page = site_folder / f"{order.rsplit(',', 1)[1]}.html"
# Written to a temporary file and renamed: readers get the old page or the new one, and the step is safe to repeat.
temporary_file = page.with_suffix(".tmp")
temporary_file.write_text(article["page"], encoding="utf-8")
temporary_file.replace(page)
print(f"wrote {page}")

with open(os.environ["POINTSMAN_EFFECTS"], "a", encoding="utf-8") as effects:
    event = {"type": "article.deployed", "key": order, "value": {"page": str(page)}}
    del article["page"]
    print(json.dumps({"result": article, "emit": [event]}), file=effects)
