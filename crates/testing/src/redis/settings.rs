//! The settings of a Redis server, and its configuration file.

use std::fmt::Write;
use std::net::SocketAddr;

/// The directives of a server that loses no acknowledged write, as the store requires.
const DURABLE_DIRECTIVES: [(&str, &str); 4] =
    [("appendonly", "yes"), ("appendfsync", "always"), ("save", "\"\""), ("maxmemory-policy", "noeviction")];

/// The settings of a Redis server. By default acknowledged writes are on disk, and no key is evicted.
#[derive(Debug, Clone, Default)]
pub struct RedisSettings {
    /// The password that clients must send.
    pub password: Option<String>,
    /// Further directives: name and value as in a line of `redis.conf`. They replace defaults of the same name.
    pub extra_directives: Vec<(String, String)>,
}

impl RedisSettings {
    /// Creates settings with these extra directives.
    pub fn with_directives(directives: &[(&str, &str)]) -> Self {
        let mut settings = Self::default();
        settings.add_directives(directives);
        settings
    }

    pub(crate) fn add_directives(&mut self, directives: &[(&str, &str)]) {
        self.extra_directives
            .extend(directives.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    }

    /// Formats the configuration file of a data server.
    pub(crate) fn format_server_config(&self, address: SocketAddr) -> String {
        let mut defaults = common_directives(address);
        defaults.extend(DURABLE_DIRECTIVES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if let Some(password) = &self.password {
            defaults.push(("requirepass".to_owned(), quote_argument(password)));
            defaults.push(("masterauth".to_owned(), quote_argument(password)));
        }
        defaults.retain(|(name, _)| {
            !self.extra_directives.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
        });
        format_directives(defaults.iter().chain(&self.extra_directives))
    }

    /// Formats the configuration file of a sentinel.
    pub(crate) fn format_sentinel_config(&self, address: SocketAddr) -> String {
        format_directives(common_directives(address).iter().chain(&self.extra_directives))
    }
}

/// Returns the directives of all servers: on loopback, with data in the working directory, in the foreground.
fn common_directives(address: SocketAddr) -> Vec<(String, String)> {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    [("bind", ip.as_str()), ("port", &port), ("protected-mode", "yes"), ("daemonize", "no"), ("dir", "data")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn format_directives<'a>(directives: impl Iterator<Item = &'a (String, String)>) -> String {
    directives.map(|(name, value)| format!("{name} {value}\n")).collect()
}

/// Quotes any text as one argument of a directive.
fn quote_argument(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for byte in text.bytes() {
        let _ = write!(quoted, "\\x{byte:02x}");
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_directives_replace_the_defaults() {
        let mut settings =
            RedisSettings::with_directives(&[("appendfsync", "everysec"), ("maxmemory", "5mb")]);
        settings.password = Some("a".into());
        let file = settings.format_server_config(SocketAddr::from(([127, 0, 0, 1], 7000)));
        let lines: Vec<&str> = file.lines().collect();
        for line in ["port 7000", "appendonly yes", "save \"\"", "requirepass \"\\x61\"", "maxmemory 5mb"] {
            assert!(lines.contains(&line), "{line} is missing in {file}");
        }
        let appendfsync_lines = lines.iter().filter(|line| line.starts_with("appendfsync"));
        assert_eq!(appendfsync_lines.collect::<Vec<_>>(), [&"appendfsync everysec"]);
    }
}
