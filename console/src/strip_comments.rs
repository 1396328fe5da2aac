//! Removes comment lines and type annotations from the console's JavaScript modules before they are served.
//!
//! Line breaks stay, so that line numbers in a browser match the file. String literals are not recognized; a test of the
//! console compares the served modules with the files.

/// Removes the comment lines and the type annotations of a module.
pub(crate) fn strip_comment_lines(text: &str) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut inside_comment = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if inside_comment {
            inside_comment = !trimmed.ends_with("*/");
        } else if trimmed.starts_with("/*") && !trimmed.contains("*/") {
            inside_comment = true;
        } else if !is_comment_line(trimmed) {
            push_without_type_annotations(line, &mut stripped);
        }
        stripped.push('\n');
    }
    stripped
}

/// Appends a line without its `/** @type {…} */` annotations.
fn push_without_type_annotations(line: &str, stripped: &mut String) {
    let mut rest = line;
    while let Some((before, annotation)) = rest.split_once("/** @type ")
        && let Some((_, after)) = annotation.split_once("*/")
    {
        stripped.push_str(before);
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    stripped.push_str(rest);
}

/// Whether a line is a comment and nothing else.
fn is_comment_line(trimmed: &str) -> bool {
    let block = trimmed.starts_with("/*") && trimmed.find("*/") == trimmed.len().checked_sub(2);
    block || trimmed.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_annotations_are_removed() {
        let text = "f(/** @type {A} */ (a), /** @type {B} */(b)); // c\nlet d = \"/** @type \";\n";
        assert_eq!(strip_comment_lines(text), "f((a), (b)); // c\nlet d = \"/** @type \";\n");
    }

    #[test]
    fn comment_lines_are_removed_and_line_numbers_stay() {
        let text = "// a\n/** b\n * c\n */\nlet d = 1; // e\n  /* f */\n/* g */ let h = \"//\";\n";
        assert_eq!(strip_comment_lines(text), "\n\n\n\nlet d = 1; // e\n\n/* g */ let h = \"//\";\n");
    }
}
