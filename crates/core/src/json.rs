//! Payloads as raw JSON text: checked once on the way in, never parsed again, never re-encoded.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON text that has been checked. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

/// The maximum nesting depth of JSON arrays and objects.
pub const MAX_NESTING: usize = 100;

/// The error of a text that is not JSON, or that not every JSON parser accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct BadJson {
    problem: String,
    offset: usize,
}

impl Json {
    /// Parses and checks a text from outside, such as a request body.
    pub fn parse(text: &str) -> Result<Self, BadJson> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|e| BadJson {
            problem: format!("not JSON: {}", describe_without_position(&e)),
            offset: error_offset(text, &e),
        })?;
        check_portable(raw.get())?;
        Ok(Self(raw.get().into()))
    }

    /// Wraps a text that was checked before, such as one read from a store.
    pub fn from_trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Serialises a value to JSON.
    pub fn from_value(value: &impl Serialize) -> Result<Self, BadJson> {
        let text = serde_json::to_string(value).map_err(|e| BadJson { problem: e.to_string(), offset: 0 })?;
        check_portable(&text)?;
        Ok(Self(text.into()))
    }

    /// The JSON value `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Deserialises the value.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }
}

/// The message of serde_json without its line and column; [`BadJson`] has the byte offset instead.
fn describe_without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&position).unwrap_or(&message).to_string()
}

/// The byte offset at which serde_json stopped.
fn error_offset(text: &str, error: &serde_json::Error) -> usize {
    let before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    before.map(str::len).sum::<usize>() + error.column().saturating_sub(1)
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(d)?;
        check_portable(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self(raw.get().into()))
    }
}

/// Rejects JSON that some store or reader could not reproduce exactly: nesting too deep, `\u0000`, half a surrogate
/// pair, numbers that do not fit a double. The text must be valid JSON.
pub fn check_portable(text: &str) -> Result<(), BadJson> {
    let bytes = text.as_bytes();
    let reject = |problem: &str, offset| Err(BadJson { problem: problem.into(), offset });
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_NESTING {
                    return reject(&format!("nested deeper than {MAX_NESTING}"), at);
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'"' => at = check_string_literal(bytes, at)?,
            b'-' | b'0'..=b'9' => {
                let end = bytes[at..]
                    .iter()
                    .position(|b| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
                    .map_or(bytes.len(), |n| at + n);
                if !text[at..end].parse::<f64>().is_ok_and(f64::is_finite) {
                    return reject("a number too large for a double", at);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Checks the escapes of the string literal that opens at `open`, and returns the index after its closing quote.
fn check_string_literal(bytes: &[u8], open: usize) -> Result<usize, BadJson> {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\\' if bytes.get(at + 1) == Some(&b'u') => {
                let unit = parse_utf16_code_unit(bytes, at + 2);
                let low_follows = bytes.get(at + 6..at + 8) == Some(b"\\u")
                    && (0xDC00..0xE000).contains(&parse_utf16_code_unit(bytes, at + 8));
                let problem = match unit {
                    0 => "the character \\u0000, which some stores cannot store,",
                    0xD800..0xDC00 if low_follows => {
                        at += 12;
                        continue;
                    }
                    0xD800..0xE000 => "half a surrogate pair",
                    _ => {
                        at += 6;
                        continue;
                    }
                };
                return Err(BadJson { problem: problem.into(), offset: at });
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Ok(at)
}

/// Parses the four hexadecimal digits of a `\u` escape as a UTF-16 code unit; 0 if they are malformed.
fn parse_utf16_code_unit(bytes: &[u8], at: usize) -> u32 {
    let hex = bytes.get(at..at + 4).and_then(|b| std::str::from_utf8(b).ok());
    hex.and_then(|h| u32::from_str_radix(h, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_json_is_kept_verbatim() {
        for text in [r#"{"a":[1,2.50,-3e4],"b":"x\u00e9\ud83d\ude00\\u0000"}"#, "null", "\"\"", "1e308", "[]"]
        {
            assert_eq!(Json::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn json_that_a_store_could_not_reproduce_is_rejected() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        for bad in [
            r#""\u0000""#,
            r#""\ud800""#,
            r#""\udc00x""#,
            r#""\ud800\u0041""#,
            "1e400",
            "[-1e999]",
            &deep,
            "{",
            "nul",
        ] {
            assert!(Json::parse(bad).is_err(), "{:.40}", bad);
        }
    }

    #[test]
    fn an_error_text_has_the_position_once() {
        assert_eq!(Json::parse("{x").unwrap_err().to_string(), "not JSON: key must be a string at byte 1");
        assert_eq!(
            Json::parse("[1,\n2 3]").unwrap_err().to_string(),
            "not JSON: expected `,` or `]` at byte 6"
        );
    }

    #[test]
    fn a_hundred_levels_of_nesting_are_accepted() {
        let deep = "[".repeat(MAX_NESTING) + &"]".repeat(MAX_NESTING);
        assert!(Json::parse(&deep).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn checking_json_never_panics(text in ".{0,200}") {
            let _ = Json::parse(&text);
            let _ = check_portable(&text);
        }
    }
}
