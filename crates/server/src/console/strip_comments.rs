//! Removes comment lines from the console's JavaScript modules before they are served.
//!
//! Only whole lines are removed, and their line breaks stay, so that line numbers in a browser match the file. Lines
//! inside of string literals are not recognized; a test of the console compares the served modules with the files.

/// Removes the comment lines of a module.
pub(super) fn strip_comment_lines(text: &str) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut inside_comment = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if inside_comment {
            inside_comment = !trimmed.ends_with("*/");
        } else if trimmed.starts_with("/*") && !trimmed.contains("*/") {
            inside_comment = true;
        } else if !is_comment_line(trimmed) {
            stripped.push_str(line);
        }
        stripped.push('\n');
    }
    stripped
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
    fn comment_lines_are_removed_and_line_numbers_stay() {
        let text = "// a\n/** b\n * c\n */\nlet d = 1; // e\n  /* f */\n/* g */ let h = \"//\";\n";
        assert_eq!(strip_comment_lines(text), "\n\n\n\nlet d = 1; // e\n\n/* g */ let h = \"//\";\n");
    }
}
