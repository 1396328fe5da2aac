//! How a Redis is set, and the file that says so.

use std::fmt::Write;
use std::net::SocketAddr;

/// A Redis that loses nothing it acknowledged, as the store wants it.
const DURABLE: [(&str, &str); 4] =
    [("appendonly", "yes"), ("appendfsync", "always"), ("save", "\"\""), ("maxmemory-policy", "noeviction")];

/// How a server is set. Without more, what it acknowledges is on disk, and it throws nothing away.
#[derive(Debug, Clone, Default)]
pub struct RedisSettings {
    /// What clients have to say to come in.
    pub password: Option<String>,
    /// Further directives: name and value as a line of `redis.conf` has them. One that is set here already gets
    /// this value instead.
    pub extra: Vec<(String, String)>,
}

impl RedisSettings {
    /// With these directives.
    pub fn with(directives: &[(&str, &str)]) -> Self {
        let mut settings = Self::default();
        settings.add(directives);
        settings
    }

    pub(crate) fn add(&mut self, directives: &[(&str, &str)]) {
        self.extra.extend(directives.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    }

    /// The file for a server that keeps data.
    pub(crate) fn file(&self, address: SocketAddr) -> String {
        let mut ours = common(address);
        ours.extend(DURABLE.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if let Some(password) = &self.password {
            ours.push(("requirepass".to_owned(), quoted(password)));
            ours.push(("masterauth".to_owned(), quoted(password)));
        }
        ours.retain(|(name, _)| !self.extra.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        lines(ours.iter().chain(&self.extra))
    }

    /// The file for a sentinel.
    pub(crate) fn sentinel_file(&self, address: SocketAddr) -> String {
        lines(common(address).iter().chain(&self.extra))
    }
}

/// On loopback, in the folder that it is started in, and in the foreground.
fn common(address: SocketAddr) -> Vec<(String, String)> {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    [("bind", ip.as_str()), ("port", &port), ("protected-mode", "yes"), ("daemonize", "no"), ("dir", "data")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn lines<'a>(directives: impl Iterator<Item = &'a (String, String)>) -> String {
    directives.map(|(name, value)| format!("{name} {value}\n")).collect()
}

/// Any text as one word of the file.
fn quoted(text: &str) -> String {
    let mut word = "\"".to_owned();
    for byte in text.bytes() {
        let _ = write!(word, "\\x{byte:02x}");
    }
    word + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stands_in_place_of_ours() {
        let mut settings = RedisSettings::with(&[("appendfsync", "everysec"), ("maxmemory", "5mb")]);
        settings.password = Some("a".into());
        let file = settings.file(SocketAddr::from(([127, 0, 0, 1], 7000)));
        let lines: Vec<&str> = file.lines().collect();
        for line in ["port 7000", "appendonly yes", "save \"\"", "requirepass \"\\x61\"", "maxmemory 5mb"] {
            assert!(lines.contains(&line), "{line} is missing in {file}");
        }
        let synced = lines.iter().filter(|line| line.starts_with("appendfsync"));
        assert_eq!(synced.collect::<Vec<_>>(), [&"appendfsync everysec"]);
    }
}
