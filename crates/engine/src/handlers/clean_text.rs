//! Converts output and responses to text for logs and errors.

/// The maximum number of bytes of a response or an output line that an error quotes.
const MAX_EXCERPT_BYTES: usize = 500;

/// Converts bytes to text that every store accepts: invalid UTF-8 and NUL are replaced by U+FFFD.
pub(super) fn to_clean_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text.into_owned() }
}

/// The beginning of an output or a response, short enough for an error message.
pub(super) fn excerpt_for_error(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    if bytes.len() <= MAX_EXCERPT_BYTES {
        return to_clean_text(bytes);
    }
    format!("{}…", to_clean_text(&bytes[..floor_char_boundary(bytes, MAX_EXCERPT_BYTES)]))
}

/// The largest length up to `max_len` at which no UTF-8 character is cut in two; `max_len` itself if the bytes there
/// are not UTF-8.
pub(super) fn floor_char_boundary(bytes: &[u8], max_len: usize) -> usize {
    let is_continuation = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    let start = (max_len.saturating_sub(3)..=max_len).rev().find(|&at| !is_continuation(at));
    start.filter(|&at| at > 0).unwrap_or(max_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_and_nul_are_replaced() {
        assert_eq!(to_clean_text(b"a\0b\xFFc"), "a\u{FFFD}b\u{FFFD}c");
    }

    #[test]
    fn excerpts_are_short_and_split_no_character() {
        assert_eq!(excerpt_for_error(b" short \n"), "short");
        let long = "é".repeat(400);
        let cut = excerpt_for_error(long.as_bytes());
        assert_eq!(cut, format!("{}…", "é".repeat(250)));
        let odd = format!("x{long}");
        assert_eq!(excerpt_for_error(odd.as_bytes()), format!("x{}…", "é".repeat(249)));
        assert_eq!(floor_char_boundary(&[0x80; 10], 5), 5);
    }
}
