//! Collects the modules that a JavaScript module imports.

use std::collections::BTreeSet;

/// All modules that `first` imports statically, directly or indirectly, without itself.
pub(crate) fn collect_imports(first: &str, read_text: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let mut modules = BTreeSet::from([first.to_owned()]);
    let mut pending = vec![first.to_owned()];
    while let Some(name) = pending.pop() {
        let text = read_text(&name).unwrap_or_default();
        for import in imported_paths(&text).filter_map(|path| resolve_import_path(&name, path)) {
            if modules.insert(import.clone()) {
                pending.push(import);
            }
        }
    }
    modules.remove(first);
    modules
}

/// The relative paths after `from` and `import`, with or without a blank.
fn imported_paths(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["from \"", "from\"", "import \"", "import\""];
    let parts = starts.into_iter().flat_map(|start| text.split(start).skip(1));
    parts.filter_map(|rest| rest.split_once('"')).map(|(path, _)| path).filter(|path| path.starts_with('.'))
}

/// Resolves the path of an import relative to the importing file.
fn resolve_import_path(file: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_imports_are_collected_transitively_and_dynamic_ones_are_not() {
        let read_text = |name: &str| {
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
        assert_eq!(
            Vec::from_iter(collect_imports("main.js", read_text)),
            ["b.js", "parts/a.js", "parts/c.js"]
        );
    }
}
