//! The Redis Cluster slot of a key, which follows from its hash tag.

/// Number of slots of a cluster.
const SLOT_COUNT: u16 = 16_384;

/// Returns the hash tag of a key: the text between its first braces.
pub(crate) fn hash_tag(key: &str) -> Option<&str> {
    let (_, after_brace) = key.split_once('{')?;
    let (tag, _) = after_brace.split_once('}')?;
    Some(tag).filter(|tag| !tag.is_empty())
}

/// Returns the slot of a key.
pub(crate) fn key_slot(key: &str) -> u16 {
    crc16(hash_tag(key).unwrap_or(key).as_bytes()) % SLOT_COUNT
}

/// Checksum of Redis Cluster: CRC-16 with polynomial 0x1021, initial value 0 (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    let shift_bit = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
    bytes.iter().fold(0, |crc: u16, byte| (0..8).fold(crc ^ u16::from(*byte) << 8, shift_bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_matches_the_specification() {
        assert_eq!(crc16(b""), 0);
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    /// Expected values are those of `CLUSTER KEYSLOT`.
    #[test]
    fn key_slots_match_redis_cluster() {
        for (key, expected) in [
            ("foo", 12_182),
            ("bar", 5061),
            ("somekey", 11_058),
            ("foo{hash_tag}", 2515),
            ("hash_tag", 2515),
            ("{user1000}.following", 3443),
            ("user1000", 3443),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061),
        ] {
            assert_eq!(key_slot(key), expected, "{key}");
        }
    }

    #[test]
    fn hash_tag_is_between_the_first_braces() {
        assert_eq!(hash_tag("{pointsman}:write-lock"), Some("pointsman"));
        assert_eq!(hash_tag("a{b}c{d}"), Some("b"));
        assert_eq!(hash_tag("a{{b}}"), Some("{b"));
        for none in ["", "plain", "{}", "a{}b", "a{b", "a}b{"] {
            assert_eq!(hash_tag(none), None, "{none}");
        }
    }
}
