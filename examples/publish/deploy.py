"""A step: puts a page where a web server would find it, and tells the world.

An article with `"busy": 2` finds the web server busy twice, so that one can see a setback.
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

site = pathlib.Path(tempfile.gettempdir()) / "pointsman-site"
site.mkdir(exist_ok=True)
# An order's id holds letters, digits, `.`, `_` and `-` alone, and so is a good name for a file.
page = site / f"{order.rsplit(',', 1)[1]}.html"
# Written beside its place and moved into it: whoever reads meets the old page or the new one, and a step that is
# run twice does no harm.
half = page.with_suffix(".half")
half.write_text(article["page"], encoding="utf-8")
half.replace(page)
print(f"wrote {page}")

with open(os.environ["POINTSMAN_EFFECTS"], "a", encoding="utf-8") as effects:
    told = {"type": "article.deployed", "key": order, "value": {"page": str(page)}}
    del article["page"]
    print(json.dumps({"result": article, "emit": [told]}), file=effects)
