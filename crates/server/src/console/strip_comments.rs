//! Modules without their comments, which are for those who read them here.
//!
//! Only whole lines go, and their line breaks stay: what a browser says of a line holds for the file, too. Whether a
//! line lies within a text is not looked at; a test of the console compares what is served with what was written.

/// A module without its comments.
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
