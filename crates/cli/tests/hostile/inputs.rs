//! Building blocks of hostile requests: texts, JSON and bytes that are known to break programs.

use pointsman_testing::Rng;

/// Texts that are known to break programs, for any parameter.
const HOSTILE_TEXTS: &[&str] = &[
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "..%2f..%2f",
    "/",
    "//",
    "a/b",
    "a:b#c?d",
    "a&b=c;d",
    "\0",
    "a\0b",
    "a\r\nx-injected: yes",
    "\n",
    "\t",
    "\u{7f}",
    "\u{85}",
    "\u{feff}",
    "\u{202e}txt.exe",
    "\u{d7ff}\u{e000}\u{ffff}",
    "ünï",
    "🚂",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "${x}",
    "$(id)",
    "%",
    "%0",
    "%zz",
    "%00",
    "%ff",
    "%c0%af",
    "%ED%A0%80",
    "null",
    "true",
    "NaN",
    "Infinity",
    "-0",
    "-1",
    "+1",
    "0x10",
    "1_000",
    "1.0",
    "1e3",
    "1e400",
    "١٢٣",
    "9007199254740991",
    "9007199254740992",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "-9223372036854775809",
    "1h2m3s",
    "1.5m",
    ".1",
    "5ms",
    "PT",
    "P1Y",
    "P99999999999999999999D",
    "99999999999999999999h",
    "2024-02-30T00:00:00Z",
    "2024-01-01",
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59.999999999999Z",
    "+275760-09-13T00:00:00Z",
    "-000001-01-01T00:00:00Z",
    "2024-01-01T00:00:60+99:99",
    "Event",
    "OrderStarted",
    "record..published",
    ".record",
    "record.",
];

/// Short JSON texts, valid and invalid.
const HOSTILE_JSON_TEXTS: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "1",
    "1.5",
    "-1",
    "1e400",
    "-1e400",
    "1e-400",
    "01",
    "+1",
    ".5",
    "1.",
    "0x1",
    "NaN",
    "Infinity",
    "9007199254740993",
    "18446744073709551616",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\x\"",
    "\"open",
    "'a'",
    "{}",
    "[]",
    "[,]",
    "{,}",
    "{\"a\"}",
    "[1,]",
    "{\"a\":1,}",
    "//",
    "/**/1",
    "\u{feff}1",
    "undefined",
    "tru",
    "\"a\nb\"",
    "\"\t\"",
];

const JSON_MEMBER_NAMES: &[&str] = &[
    "type",
    "key",
    "sub",
    "value",
    "context",
    "tenant",
    "delay",
    "at",
    "priority",
    "specversion",
    "id",
    "source",
    "subject",
    "data",
    "data_base64",
    "time",
    "datacontenttype",
    "reason",
    "TYPE",
    "Type",
    "__proto__",
    "",
    "a.b",
    "a/b~c",
    "eventId",
    "prev",
    "cause",
    "ünï",
];

/// Returns a text that is known to break programs, repeated at times, or a long or random text.
pub(crate) fn random_hostile_text(rng: &mut Rng) -> String {
    match rng.next_below(8) {
        0 => random_text(rng),
        1 => rng.choose(HOSTILE_TEXTS).repeat(1 + rng.next_below(40)),
        2 => "x".repeat(100 + rng.next_below(2000)),
        _ => (*rng.choose(HOSTILE_TEXTS)).to_owned(),
    }
}

/// Random Unicode characters.
fn random_text(rng: &mut Rng) -> String {
    let count = rng.next_below(30);
    let mut any = || char::from_u32((rng.next_u64() % 0x11_0000) as u32).unwrap_or('\u{fffd}');
    (0..count).map(|_| any()).collect()
}

/// Random bytes.
pub(crate) fn random_bytes(rng: &mut Rng, max_count: usize) -> Vec<u8> {
    (0..rng.next_below(max_count)).map(|_| rng.next_u64() as u8).collect()
}

/// Nested text similar to JSON, possibly with duplicate members.
pub(crate) fn random_json_like_text(rng: &mut Rng, depth: usize) -> String {
    match rng.next_below(if depth == 0 { 3 } else { 6 }) {
        0 => (*rng.choose(HOSTILE_JSON_TEXTS)).to_owned(),
        1 => serde_json::Value::from(random_hostile_text(rng)).to_string(),
        2 => (rng.next_u64() as i64).to_string(),
        3 => {
            let items: Vec<String> =
                (0..rng.next_below(5)).map(|_| random_json_like_text(rng, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => random_json_like_object(rng, depth - 1),
    }
}

fn random_json_like_object(rng: &mut Rng, depth: usize) -> String {
    let members: Vec<String> = (0..rng.next_below(6))
        .map(|_| {
            let name = if rng.one_in(6) {
                random_hostile_text(rng)
            } else {
                (*rng.choose(JSON_MEMBER_NAMES)).to_owned()
            };
            format!("{}:{}", serde_json::Value::from(name), random_json_like_text(rng, depth))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Flips, deletes, inserts or repeats a few bytes.
pub(crate) fn mutate_bytes(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..1 + rng.next_below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.next_below(bytes.len());
        match rng.next_below(5) {
            0 => bytes[at] ^= 1 << rng.next_below(8),
            1 => bytes[at] = rng.next_u64() as u8,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, rng.next_u64() as u8),
            _ => {
                let end = (at + 1 + rng.next_below(12)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
}

/// Percent-encodes a text in one of several ways: correctly, partially or unusually.
pub(crate) fn percent_encode_randomly(text: &str, rng: &mut Rng) -> String {
    let style = rng.next_below(4);
    let mut out = String::new();
    for &byte in text.as_bytes() {
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        // Only characters that are valid in an address; `framing::generate_invalid_head_request` sends invalid ones.
        let is_reserved_and_unescaped = b":/?#@!$&'()*+,;=%".contains(&byte) && style == 0;
        match byte {
            _ if is_unreserved && style != 3 => out.push(byte as char),
            _ if is_reserved_and_unescaped => out.push(byte as char),
            _ if style == 1 => out.push_str(&format!("%{byte:02x}")),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
