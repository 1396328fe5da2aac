//! Which modules a module needs before it can run.

use std::collections::BTreeSet;

/// All modules that one imports, directly or not, itself left out. What is only loaded later is not among them.
pub(super) fn all(first: &str, text_of: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::from([first.to_owned()]);
    let mut next = vec![first.to_owned()];
    while let Some(name) = next.pop() {
        let text = text_of(&name).unwrap_or_default();
        for import in named(&text).filter_map(|path| beside(&name, path)) {
            if found.insert(import.clone()) {
                next.push(import);
            }
        }
    }
    found.remove(first);
    found
}

/// What stands behind `from` and `import`, with blanks or without. Comments hold imports, too, in braces.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["from \"", "from\"", "import \"", "import\""];
    let parts = starts.into_iter().flat_map(|start| text.split(start).skip(1));
    parts.filter_map(|rest| rest.split_once('"')).map(|(path, _)| path).filter(|path| path.starts_with('.'))
}

/// A path as one file names another.
fn beside(file: &str, path: &str) -> Option<String> {
    let mut place: Vec<&str> = file.split('/').collect();
    place.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                place.pop()?;
            }
            name => place.push(name),
        }
    }
    Some(place.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_through_others_and_later_ones_are_not() {
        let text_of = |name: &str| {
            let text = match name {
                "main.js" => {
                    "import { a } from \"./parts/a.js\";\nimport \"./b.js\";\nimport(\"./late.js\");"
                }
                "parts/a.js" => "import{b}from\"../b.js\";export * from \"./c.js\"",
                "b.js" => "import { a } from \"./parts/a.js\";",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(Vec::from_iter(all("main.js", text_of)), ["b.js", "parts/a.js", "parts/c.js"]);
    }
}
