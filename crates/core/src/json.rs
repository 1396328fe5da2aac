//! Payloads as raw JSON text: checked once on the way in, never parsed again, never re-encoded.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON text that has been checked. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

/// The deepest nesting that is taken.
pub const MAX_DEPTH: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct BadJson {
    what: String,
    at: usize,
}

impl Json {
    /// Checks a text from outside.
    pub fn parse(text: &str) -> Result<Self, BadJson> {
        let raw: &RawValue = serde_json::from_str(text)
            .map_err(|e| BadJson { what: format!("not JSON: {}", said(&e)), at: offset(text, &e) })?;
        check(raw.get())?;
        Ok(Self(raw.get().into()))
    }

    /// A text that a store has kept for us: it was checked when it came in.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The JSON of any serialisable value.
    pub fn of(value: &impl Serialize) -> Result<Self, BadJson> {
        let text = serde_json::to_string(value).map_err(|e| BadJson { what: e.to_string(), at: 0 })?;
        check(&text)?;
        Ok(Self(text.into()))
    }

    pub fn null() -> Self {
        Self("null".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }
}

/// What serde_json found, without the place, which is told as a byte.
fn said(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    said.strip_suffix(&place).unwrap_or(&said).to_string()
}

/// Where in the text serde_json stopped.
fn offset(text: &str, error: &serde_json::Error) -> usize {
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
        check(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self(raw.get().into()))
    }
}

/// Refuses what some store or reader could not carry faithfully: nesting too deep, `\u0000`, half a surrogate
/// pair, numbers that no double can hold. The text is known to be JSON.
pub fn check(text: &str) -> Result<(), BadJson> {
    let bytes = text.as_bytes();
    let fault = |what: &str, at| Err(BadJson { what: what.into(), at });
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return fault(&format!("nested deeper than {MAX_DEPTH}"), at);
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'"' => at = check_string(bytes, at)?,
            b'-' | b'0'..=b'9' => {
                let end = bytes[at..]
                    .iter()
                    .position(|b| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
                    .map_or(bytes.len(), |n| at + n);
                if !text[at..end].parse::<f64>().is_ok_and(f64::is_finite) {
                    return fault("a number too large for a double", at);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Checks the string that opens at `open` and returns the index after its closing quote.
fn check_string(bytes: &[u8], open: usize) -> Result<usize, BadJson> {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\\' if bytes.get(at + 1) == Some(&b'u') => {
                let unit = code_unit(bytes, at + 2);
                let low_follows = bytes.get(at + 6..at + 8) == Some(b"\\u")
                    && (0xDC00..0xE000).contains(&code_unit(bytes, at + 8));
                let what = match unit {
                    0 => "the character \\u0000, which not every store can hold,",
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
                return Err(BadJson { what: what.into(), at });
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Ok(at)
}

fn code_unit(bytes: &[u8], at: usize) -> u32 {
    let hex = bytes.get(at..at + 4).and_then(|b| std::str::from_utf8(b).ok());
    hex.and_then(|h| u32::from_str_radix(h, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_texts_stay_as_they_are() {
        for text in [r#"{"a":[1,2.50,-3e4],"b":"x\u00e9\ud83d\ude00\\u0000"}"#, "null", "\"\"", "1e308", "[]"]
        {
            assert_eq!(Json::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_a_store_could_not_carry_is_refused() {
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
    fn a_fault_tells_its_place_once() {
        assert_eq!(Json::parse("{x").unwrap_err().to_string(), "not JSON: key must be a string at byte 1");
        assert_eq!(
            Json::parse("[1,\n2 3]").unwrap_err().to_string(),
            "not JSON: expected `,` or `]` at byte 6"
        );
    }

    #[test]
    fn a_hundred_levels_are_taken() {
        let deep = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
        assert!(Json::parse(&deep).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn checking_never_panics(text in ".{0,200}") {
            let _ = Json::parse(&text);
            let _ = check(&text);
        }
    }
}
