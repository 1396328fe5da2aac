//! The encodings that a client accepts.

use http::{HeaderMap, header};

/// Whether a response may be compressed with gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let gzip = accepted.flat_map(|list| list.split(',')).find_map(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        name.trim().eq_ignore_ascii_case("gzip").then(|| weight.trim())
    });
    gzip.is_some_and(|weight| {
        let number = weight.trim_start_matches(['q', 'Q', '=', ' ']);
        number.is_empty() || number.parse::<f32>().is_ok_and(|number| number > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_only_if_the_client_accepts_it() {
        for (text, accepts) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip; q=1", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000, br", false),
            ("identity", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, text.parse().unwrap());
            assert_eq!(accepts_gzip(&headers), accepts, "{text:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
