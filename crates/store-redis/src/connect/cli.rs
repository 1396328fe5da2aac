//! Calls of redis-cli for an operator, addressed to the server with our keys.

use super::tls::CertificateCheck;
use super::{Endpoint, PasswordSource, ServerAddress};
use crate::error::OpenError;

impl Endpoint {
    /// Returns the redis-cli call for this server.
    pub(crate) async fn redis_cli(&self) -> String {
        self.redis_cli_call(self.resolve_off_runtime().await)
    }

    /// Blocking variant of [`Endpoint::redis_cli`].
    pub(crate) fn redis_cli_blocking(&self) -> String {
        self.redis_cli_call(self.resolve())
    }

    /// Falls back to the first host of the URL if the server cannot be resolved.
    fn redis_cli_call(&self, at: Result<ServerAddress, OpenError>) -> String {
        let mut call = String::from("redis-cli");
        if let Some(ServerAddress { host, port }) = at.ok().as_ref().or(self.hosts.first()) {
            call += &format!(" -h {} -p {port}", shell_quote(host.as_bytes()));
        }
        call += &format!(" -n {}", self.database);
        match self.tls.as_ref().map(|tls| tls.certificate_check()) {
            None => {}
            Some(CertificateCheck::None) => call += " --tls --insecure",
            Some(CertificateCheck::Issuer | CertificateCheck::IssuerAndHost) => call += " --tls",
        }
        if let Some(login) = &self.login {
            let user = login.user.as_ref().map(|user| format!(" --user {}", shell_quote(user.as_bytes())));
            call += &user.unwrap_or_default();
            // redis-cli reads a password from the environment itself.
            call += if login.source == PasswordSource::Url { " --askpass" } else { "" };
        }
        call
    }
}

/// Quotes an argument for the shell.
pub(crate) fn shell_quote(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && word.iter().all(plain) => text.into(),
        Ok(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        Ok(_) | Err(_) => {
            let bytes = word.iter().map(|byte| match byte {
                byte if plain(byte) => char::from(*byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            });
            format!("$'{}'", bytes.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_the_shell() {
        for (word, as_read) in [
            (b"record:1".as_slice(), "record:1"),
            (b"", "''"),
            (b"{pointsman}:objects.with.events", "'{pointsman}:objects.with.events'"),
            (b"it's here", r"'it'\''s here'"),
            ("caf\u{e9}".as_bytes(), "'caf\u{e9}'"),
            (b"a\nb", r"$'a\x0ab'"),
            (b"\xff'", r"$'\xff\x27'"),
        ] {
            assert_eq!(shell_quote(word), as_read);
        }
    }

    #[test]
    fn redis_cli_call_names_the_server_and_hides_the_password() {
        let call = |url| {
            let endpoint = Endpoint::parse(url).unwrap();
            endpoint.redis_cli_call(Ok(endpoint.hosts[0].clone()))
        };
        assert_eq!(call("redis://db.example:7000/3"), "redis-cli -h db.example -p 7000 -n 3");
        assert_eq!(call("redis://ann:s3cret@db"), "redis-cli -h db -p 6379 -n 0 --user ann --askpass");
        assert_eq!(call("redis://:s3cret@db"), "redis-cli -h db -p 6379 -n 0 --askpass");
        assert_eq!(call("rediss://db"), "redis-cli -h db -p 6379 -n 0 --tls");
        assert_eq!(call("rediss://db?sslmode=require"), "redis-cli -h db -p 6379 -n 0 --tls --insecure");
    }
}
