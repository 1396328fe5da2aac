//! Texts for a terminal: what is in them is shown, not obeyed, and measured as the terminal shows it.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// A text from elsewhere, made safe for a terminal: what would steer it is shown, not obeyed. Tabs stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    cleaned(text, |c| c != '\t' && steers(c))
}

/// The same for texts of several lines.
pub(crate) fn clean_lines(text: &str) -> Cow<'_, str> {
    cleaned(text, |c| !matches!(c, '\t' | '\n') && steers(c))
}

/// The same for a cell of a table, which is one line and has its width.
pub(super) fn clean_cell(text: &str) -> Cow<'_, str> {
    cleaned(text, steers)
}

/// JSON in which what would steer a terminal is written in letters, as JSON can. It reads the same.
pub(super) fn clean_json(json: &str) -> Cow<'_, str> {
    // Tabs stand between tokens, and all others in texts.
    let is_bad = |c: char| c != '\t' && steers(c);
    if !json.chars().any(is_bad) {
        return json.into();
    }
    json.chars().map(|c| if is_bad(c) { escaped(c) } else { c.to_string() }).collect::<String>().into()
}

fn escaped(c: char) -> String {
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn cleaned(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_bad) {
        return text.into();
    }
    let shown = |c: char| if is_bad(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect::<String>().into()
}

/// Whether a terminal does something else than to show this: control characters, and those that turn the direction of
/// writing, end a line, or are not seen at all.
fn steers(c: char) -> bool {
    let is_unseen = matches!(c,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || is_unseen
}

/// At most so many columns of a text; an ellipsis stands for the rest.
pub(crate) fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    if width(&text) <= most {
        return text.into_owned();
    }
    let (start, _) = cut(&text, most.saturating_sub(1));
    format!("{start}…")
}

/// How many columns a text takes. Colours take none.
pub(crate) fn width(text: &str) -> usize {
    let mut rest = text;
    let mut sum = 0;
    while let Some(at) = rest.find("\x1b[") {
        sum += plain_width(&rest[..at]);
        rest = rest[at..].split_once('m').map_or("", |(_, rest)| rest);
    }
    sum + plain_width(rest)
}

fn plain_width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// A text in its column: with blanks behind it up to that width.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// The first so many columns of a text, and the rest.
fn cut(text: &str, columns: usize) -> (&str, &str) {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken > columns
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

/// A text in lines of at most so many columns, broken at blanks, but not within a time. A word that is wider has a line
/// of its own and runs over the edge.
pub(crate) fn fold(text: &str, most: usize) -> Vec<String> {
    if width(text) <= most {
        return vec![text.into()];
    }
    let mut lines: Vec<String> = vec![];
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            // Blanks at which a line ends are not seen.
            Some(_) if word.is_empty() => {}
            Some(_) | None => lines.push(word.into()),
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

/// The same, and what is wider is broken as well.
pub(super) fn fold_hard(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![];
    for line in fold(text, most) {
        let mut rest = line.as_str();
        while width(rest) > most {
            let (start, end) = cut(rest, most);
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

/// What a text is not broken within.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let blank = text.match_indices(' ').map(|(at, _)| at).find(|at| !is_in_a_time(text, *at));
        let (word, after) = match blank {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        rest = after;
        Some(word)
    })
}

/// Whether a blank stands between a day and an hour.
fn is_in_a_time(text: &str, blank: usize) -> bool {
    let is_like = |text: Option<&str>, form: &str| {
        let alike = |(c, like): (char, char)| if like == '0' { c.is_ascii_digit() } else { c == like };
        text.is_some_and(|text| text.chars().zip(form.chars()).all(alike))
    };
    let day = blank.checked_sub(10).and_then(|start| text.get(start..blank));
    is_like(day, "0000-00-00") && is_like(text.get(blank + 1..blank + 9), "00:00:00")
}

/// A number and what it counts, in the singular or the plural.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The hour, minute, second and millisecond of an RFC 3339 time.
pub(crate) fn clock(time: &str) -> &str {
    time.get(11..23).unwrap_or(time)
}

/// An RFC 3339 time to the second, as people write it.
pub(crate) fn day_and_time(time: &str) -> String {
    time.get(..19).unwrap_or(time).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_wrote_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\tc"), "a\\u{1b}[2Jb\tc");
        assert_eq!(clean("a\u{9b}31mb"), "a\\u{9b}31mb");
        assert_eq!(clean("ü"), "ü");
        assert_eq!(clean_cell("a\tb\nc"), "a\\tb\\nc");
        assert_eq!(clean_lines("a\nb\rc"), "a\nb\\rc");
    }

    #[test]
    fn a_text_cannot_turn_the_writing_around_and_may_be_written_from_the_right() {
        assert_eq!(clean("invoice\u{202e}fdp.exe"), "invoice\\u{202e}fdp.exe");
        assert_eq!(clean("a\u{2028}b\u{200b}c"), "a\\u{2028}b\\u{200b}c");
        for fine in ["שלום", "مرحبا", "👩\u{200d}🚀", "می\u{200c}خواهم"] {
            assert_eq!(clean(fine), fine);
        }
    }

    #[test]
    fn json_on_a_terminal_reads_the_same() {
        let json = serde_json::json!({"a": "x\u{9b}31m\u{202e}\u{e0041}\u{7f}"});
        let shown = clean_json(&json.to_string()).into_owned();
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
    }

    #[test]
    fn long_texts_are_cut_by_what_is_seen_of_them() {
        assert_eq!(short("äöüß", 4), "äöüß");
        assert_eq!(short("äöüßx", 4), "äöü…");
        assert_eq!(short("日本語", 6), "日本語");
        assert_eq!(short("日本語", 5), "日本…");
        assert_eq!(short("日本語", 4), "日…");
    }

    #[test]
    fn colours_and_marks_take_no_room() {
        assert_eq!(width("\x1b[31mred\x1b[0m"), 3);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("日本"), 4);
        assert_eq!(pad("日本", 6), "日本  ");
    }

    #[test]
    fn a_text_is_broken_at_blanks_and_not_within_a_time() {
        assert_eq!(fold("one two three", 7), ["one two", "three"]);
        assert_eq!(fold("anextraordinarilylongword it is", 5), ["anextraordinarilylongword", "it is"]);
        assert_eq!(fold("until 2026-01-31 12:00:00 then", 12), ["until", "2026-01-31 12:00:00", "then"]);
        assert_eq!(fold("one    two", 5), ["one", "two"]);
        assert_eq!(fold_hard("anextraordinarily it", 8), ["anextrao", "rdinaril", "y", "it"]);
        assert_eq!(fold_hard("日本", 1), ["日本"], "what is too wide for any line is left as it is");
    }

    #[test]
    fn one_is_singular() {
        let tries = |count| counted(count, "retry", "retries");
        assert_eq!([tries(0), tries(1), tries(2)], ["0 retries", "1 retry", "2 retries"]);
    }

    #[test]
    fn times_are_shown_as_people_write_them() {
        let time = "2016-11-04T11:07:35.827000Z";
        assert_eq!(clock(time), "11:07:35.827");
        assert_eq!(day_and_time(time), "2016-11-04 11:07:35");
        assert_eq!(day_and_time(""), "");
    }
}
