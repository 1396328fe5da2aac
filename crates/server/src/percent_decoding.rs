//! Strict percent-decoding: every `%` is followed by two hexadecimal digits, and the bytes are UTF-8.

/// Decodes a text; `None` if the encoding is invalid.
pub(crate) fn decode_percent_encoded(text: &str) -> Option<String> {
    if !is_well_formed_percent_encoded(text) {
        return None;
    }
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

fn is_well_formed_percent_encoded(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
        bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_percent_encodings_are_accepted() {
        assert_eq!(decode_percent_encoded("a%2Fb%C3%A4").as_deref(), Some("a/bä"));
        for bad in ["%", "%2", "%zz", "%ff", "a%+1"] {
            assert_eq!(decode_percent_encoded(bad), None, "{bad}");
        }
    }
}
