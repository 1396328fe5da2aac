//! Standard Webhooks signatures, which prove to the receiver the sender, the content and the time of a request.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
#[cfg(feature = "http")]
use hmac::{Hmac, KeyInit, Mac};
#[cfg(feature = "http")]
use sha2::Sha256;

/// The start of a secret as it is configured; the key in base64 follows.
const SECRET_PREFIX: &str = "whsec_";
/// The lengths of a key in bytes that the standard allows.
const ALLOWED_KEY_LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// A key that is shared with the receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// Why a secret was refused. The secret itself is never repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// The text does not begin with `whsec_`.
    #[error("a webhook secret begins with whsec_")]
    MissingPrefix,
    /// The rest of the text is not Base64.
    #[error("the part after whsec_ is not base64")]
    InvalidBase64,
    /// The key is too short or too long.
    #[error("a webhook secret has 24 to 64 bytes, this one has {0}")]
    InvalidLength(usize),
}

impl WebhookSecret {
    /// Validates the length of a key.
    pub fn new(key: impl Into<Vec<u8>>) -> Result<Self, BadSecret> {
        let key = key.into();
        if ALLOWED_KEY_LENGTHS.contains(&key.len()) {
            Ok(Self(key))
        } else {
            Err(BadSecret::InvalidLength(key.len()))
        }
    }

    /// Signs the id, the time and the body, so that none of them can be replaced.
    #[cfg(feature = "http")]
    fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

impl std::str::FromStr for WebhookSecret {
    type Err = BadSecret;
    fn from_str(text: &str) -> Result<Self, BadSecret> {
        let key = text.strip_prefix(SECRET_PREFIX).ok_or(BadSecret::MissingPrefix)?;
        Self::new(STANDARD.decode(key).map_err(|_| BadSecret::InvalidBase64)?)
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// The `webhook-signature` header: one signature for each secret.
#[cfg(feature = "http")]
pub(super) fn signature_header(secrets: &[WebhookSecret], id: &str, seconds: i64, body: &[u8]) -> String {
    let signatures: Vec<_> = secrets.iter().filter_map(|secret| secret.sign(id, seconds, body)).collect();
    signatures.join(" ")
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_reference_implementation() {
        for length in ALLOWED_KEY_LENGTHS {
            let key: Vec<u8> = (0..length).map(|n| (n * 7 % 256) as u8).collect();
            let text = format!("{SECRET_PREFIX}{}", STANDARD.encode(&key));
            let secret: WebhookSecret = text.parse().unwrap();
            let reference_webhook = standardwebhooks::Webhook::new(&text).unwrap();
            for body in ["", "{}", r#"{"title":"é"}"#] {
                let expected =
                    reference_webhook.sign("index_record_1", 1_700_000_000, body.as_bytes()).unwrap();
                let signed = signature_header(
                    std::slice::from_ref(&secret),
                    "index_record_1",
                    1_700_000_000,
                    body.as_bytes(),
                );
                assert_eq!(signed, expected);
            }
        }
    }

    #[test]
    fn bad_secrets_are_rejected_and_never_printed() {
        assert_eq!("secret".parse::<WebhookSecret>(), Err(BadSecret::MissingPrefix));
        assert_eq!("whsec_!".parse::<WebhookSecret>(), Err(BadSecret::InvalidBase64));
        assert_eq!("whsec_AAAA".parse::<WebhookSecret>(), Err(BadSecret::InvalidLength(3)));
        let secret = WebhookSecret::new([b'k'; 24]).unwrap();
        assert!(!format!("{secret:?}").contains("107"));
    }
}
