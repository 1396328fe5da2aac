//! Modules without their comments, which are for those who read them here.
//!
//! Only whole lines go, and their line breaks stay: what a browser says of a line holds for the file, too. Whether a
//! line lies within a text is not looked at; a test of the console compares what is served with what was written.

/// A module without its comments.
pub(super) fn lean(text: &str) -> String {
    let mut lean = String::with_capacity(text.len());
    let mut inside = false;
    for line in text.lines() {
        let words = line.trim();
        if inside {
            inside = !words.ends_with("*/");
        } else if words.starts_with("/*") && !words.contains("*/") {
            inside = true;
        } else if !is_comment(words) {
            lean.push_str(line);
        }
        lean.push('\n');
    }
    lean
}

/// Whether a line is a comment and nothing else.
fn is_comment(words: &str) -> bool {
    let block = words.starts_with("/*") && words.find("*/") == words.len().checked_sub(2);
    block || words.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_of_comments_go_and_code_stays_in_its_line() {
        let text = "// a\n/** b\n * c\n */\nlet d = 1; // e\n  /* f */\n/* g */ let h = \"//\";\n";
        assert_eq!(lean(text), "\n\n\n\nlet d = 1; // e\n\n/* g */ let h = \"//\";\n");
    }
}
