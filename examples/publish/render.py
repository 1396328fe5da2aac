"""A step that turns an article into a page.

Standard input contains the order's value. The result becomes the new value, which the next step gets.
"""

import html
import json
import os
import sys

article = json.load(sys.stdin)["value"]
if not isinstance(article, dict) or not article.get("title"):
    sys.exit("an article has a title")

title, text = html.escape(article["title"]), html.escape(article.get("text", ""))
page = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{text}</p>"
print(f"{len(page)} characters")

with open(os.environ["POINTSMAN_EFFECTS"], "a", encoding="utf-8") as effects:
    print(json.dumps({"result": {**article, "page": page}}), file=effects)
