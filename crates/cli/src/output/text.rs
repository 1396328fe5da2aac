//! Text for a terminal: control characters are escaped, widths are measured in columns.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Escapes the control characters of untrusted text, so that it cannot control the terminal. Tabs stay.
pub(crate) fn escape_controls(text: &str) -> Cow<'_, str> {
    escape_matching_chars(text, |c| c != '\t' && is_unsafe_on_terminal(c))
}

/// Escapes as [`escape_controls`] does, but keeps line breaks.
pub(crate) fn escape_controls_in_lines(text: &str) -> Cow<'_, str> {
    escape_matching_chars(text, |c| !matches!(c, '\t' | '\n') && is_unsafe_on_terminal(c))
}

/// Escapes as [`escape_controls`] does, and tabs too: a table cell has a fixed width.
pub(super) fn escape_controls_in_cell(text: &str) -> Cow<'_, str> {
    escape_matching_chars(text, is_unsafe_on_terminal)
}

/// Escapes control characters as JSON does (`\u001b`). The document keeps its meaning.
pub(super) fn escape_controls_in_json(json: &str) -> Cow<'_, str> {
    // JSON allows tabs only between tokens, and the other characters only in strings, where they can be escaped.
    let is_unsafe = |c: char| c != '\t' && is_unsafe_on_terminal(c);
    if !json.chars().any(is_unsafe) {
        return json.into();
    }
    json.chars()
        .map(|c| if is_unsafe(c) { escape_char_for_json(c) } else { c.to_string() })
        .collect::<String>()
        .into()
}

fn escape_char_for_json(c: char) -> String {
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn escape_matching_chars(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_unsafe) {
        return text.into();
    }
    let escape = |c: char| if is_unsafe(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect::<String>().into()
}

/// Whether a character controls the terminal or hides text: control characters, and those that reverse the writing
/// direction, end a line, or are invisible.
fn is_unsafe_on_terminal(c: char) -> bool {
    let is_invisible = matches!(c,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || is_invisible
}

/// Cuts a text to at most this many columns, with an ellipsis for the rest, and escapes control characters.
pub(crate) fn escape_and_shorten(text: &str, max_width: usize) -> String {
    let text = escape_controls(text);
    if display_width(&text) <= max_width {
        return text.into_owned();
    }
    let (start, _) = split_at_width(&text, max_width.saturating_sub(1));
    format!("{start}…")
}

/// The number of columns that a text takes. Colour codes take none.
pub(crate) fn display_width(text: &str) -> usize {
    let mut rest = text;
    let mut sum = 0;
    while let Some(start) = rest.find("\x1b[") {
        sum += plain_text_width(&rest[..start]);
        rest = rest[start..].split_once('m').map_or("", |(_, rest)| rest);
    }
    sum + plain_text_width(rest)
}

fn plain_text_width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Pads a text with blanks to this many columns.
pub(crate) fn pad_to_width(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(display_width(text)))
}

/// Splits a text after this many columns.
fn split_at_width(text: &str, columns: usize) -> (&str, &str) {
    let mut width = 0;
    let end = text.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or(0);
        width > columns
    });
    text.split_at(end.map_or(text.len(), |(index, _)| index))
}

/// Wraps a text at blanks into lines of at most this many columns, but not inside a timestamp. A wider word gets a line
/// of its own.
pub(crate) fn wrap_text(text: &str, max_width: usize) -> Vec<String> {
    if display_width(text) <= max_width {
        return vec![text.into()];
    }
    let mut lines: Vec<String> = vec![];
    for word in split_words(text) {
        match lines.last_mut() {
            Some(line) if display_width(line) + 1 + display_width(word) <= max_width => {
                line.push(' ');
                line.push_str(word);
            }
            // Drop blanks at the end of a line.
            Some(_) if word.is_empty() => {}
            Some(_) | None => lines.push(word.into()),
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

/// Wraps as [`wrap_text`] does, and breaks words that are wider than a line.
pub(super) fn wrap_text_breaking_words(text: &str, max_width: usize) -> Vec<String> {
    let mut lines = vec![];
    for line in wrap_text(text, max_width) {
        let mut rest = line.as_str();
        while display_width(rest) > max_width {
            let (start, end) = split_at_width(rest, max_width);
            if start.is_empty() {
                break;
            }
            lines.push(start.to_owned());
            rest = end;
        }
        lines.push(rest.to_owned());
    }
    lines
}

/// The parts of a text that are not broken: words, and timestamps with their blank.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut blanks = text.match_indices(' ').map(|(index, _)| index);
        let blank = blanks.find(|index| !is_blank_inside_timestamp(text, *index));
        let (word, after) = match blank {
            Some(index) => (&text[..index], Some(&text[index + 1..])),
            None => (text, None),
        };
        rest = after;
        Some(word)
    })
}

/// Whether the blank at this index separates the date and the time of a timestamp; no line is broken there.
fn is_blank_inside_timestamp(text: &str, blank: usize) -> bool {
    let matches = |text: Option<&str>, pattern: &str| {
        let fits = |(c, expected): (char, char)| {
            if expected == '0' { c.is_ascii_digit() } else { c == expected }
        };
        text.is_some_and(|text| text.chars().zip(pattern.chars()).all(fits))
    };
    let date = blank.checked_sub(10).and_then(|start| text.get(start..blank));
    matches(date, "0000-00-00") && matches(text.get(blank + 1..blank + 9), "00:00:00")
}

/// A number with its noun in the singular or the plural.
pub(crate) fn format_count(count: u64, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// The time of an RFC 3339 timestamp, to the millisecond.
pub(crate) fn time_of_day(time: &str) -> &str {
    time.get(11..23).unwrap_or(time)
}

/// An RFC 3339 timestamp as `2026-01-31 12:00:00`.
pub(crate) fn format_timestamp(time: &str) -> String {
    time.get(..19).unwrap_or(time).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_controls("a\x1b[2Jb\tc"), "a\\u{1b}[2Jb\tc");
        assert_eq!(escape_controls("a\u{9b}31mb"), "a\\u{9b}31mb");
        assert_eq!(escape_controls("ü"), "ü");
        assert_eq!(escape_controls_in_cell("a\tb\nc"), "a\\tb\\nc");
        assert_eq!(escape_controls_in_lines("a\nb\rc"), "a\nb\\rc");
    }

    #[test]
    fn bidi_overrides_are_escaped_and_right_to_left_text_stays() {
        assert_eq!(escape_controls("invoice\u{202e}fdp.exe"), "invoice\\u{202e}fdp.exe");
        assert_eq!(escape_controls("a\u{2028}b\u{200b}c"), "a\\u{2028}b\\u{200b}c");
        for fine in ["שלום", "مرحبا", "👩\u{200d}🚀", "می\u{200c}خواهم"] {
            assert_eq!(escape_controls(fine), fine);
        }
    }

    #[test]
    fn escaped_json_keeps_its_meaning() {
        let json = serde_json::json!({"a": "x\u{9b}31m\u{202e}\u{e0041}\u{7f}"});
        let escaped = escape_controls_in_json(&json.to_string()).into_owned();
        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), json);
    }

    #[test]
    fn long_texts_are_shortened_by_display_width() {
        assert_eq!(escape_and_shorten("äöüß", 4), "äöüß");
        assert_eq!(escape_and_shorten("äöüßx", 4), "äöü…");
        assert_eq!(escape_and_shorten("日本語", 6), "日本語");
        assert_eq!(escape_and_shorten("日本語", 5), "日本…");
        assert_eq!(escape_and_shorten("日本語", 4), "日…");
    }

    #[test]
    fn colours_and_combining_marks_have_no_width() {
        assert_eq!(display_width("\x1b[31mred\x1b[0m"), 3);
        assert_eq!(display_width("e\u{301}"), 1);
        assert_eq!(display_width("日本"), 4);
        assert_eq!(pad_to_width("日本", 6), "日本  ");
    }

    #[test]
    fn text_wraps_at_blanks_but_not_inside_a_timestamp() {
        assert_eq!(wrap_text("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_text("anextraordinarilylongword it is", 5), ["anextraordinarilylongword", "it is"]);
        assert_eq!(wrap_text("until 2026-01-31 12:00:00 then", 12), ["until", "2026-01-31 12:00:00", "then"]);
        assert_eq!(wrap_text("one    two", 5), ["one", "two"]);
        assert_eq!(wrap_text_breaking_words("anextraordinarily it", 8), ["anextrao", "rdinaril", "y", "it"]);
        assert_eq!(
            wrap_text_breaking_words("日本", 1),
            ["日本"],
            "a character wider than the line is not broken"
        );
    }

    #[test]
    fn a_count_of_one_is_singular() {
        let tries = |count| format_count(count, "retry", "retries");
        assert_eq!([tries(0), tries(1), tries(2)], ["0 retries", "1 retry", "2 retries"]);
    }

    #[test]
    fn timestamps_are_shortened() {
        let time = "2016-11-04T11:07:35.827000Z";
        assert_eq!(time_of_day(time), "11:07:35.827");
        assert_eq!(format_timestamp(time), "2016-11-04 11:07:35");
        assert_eq!(format_timestamp(""), "");
    }
}
