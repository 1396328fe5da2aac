//! Where Redis Cluster keeps a key: which of its slots follows from the key's hash tag.

/// How many slots a cluster has.
const SLOT_COUNT: u16 = 16_384;

/// What decides on a key's slot: what stands between its first braces, or all of it.
pub(crate) fn hash_tag(key: &str) -> Option<&str> {
    let (_, behind) = key.split_once('{')?;
    let (tag, _) = behind.split_once('}')?;
    Some(tag).filter(|tag| !tag.is_empty())
}

/// The slot of a key.
pub(crate) fn key_slot(key: &str) -> u16 {
    crc16(hash_tag(key).unwrap_or(key).as_bytes()) % SLOT_COUNT
}

/// The checksum that Redis Cluster counts by: CRC-16 with the polynomial 0x1021, begun at 0 (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    let by_bit = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
    bytes.iter().fold(0, |crc: u16, byte| (0..8).fold(crc ^ u16::from(*byte) << 8, by_bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_matches_the_specification() {
        assert_eq!(crc16(b""), 0);
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    /// As `CLUSTER KEYSLOT` tells them.
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
        assert_eq!(hash_tag("{pointsman}:turn"), Some("pointsman"));
        assert_eq!(hash_tag("a{b}c{d}"), Some("b"));
        assert_eq!(hash_tag("a{{b}}"), Some("{b"));
        for none in ["", "plain", "{}", "a{}b", "a{b", "a}b{"] {
            assert_eq!(hash_tag(none), None, "{none}");
        }
    }
}
