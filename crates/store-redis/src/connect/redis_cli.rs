//! Commands with redis-cli that an operator can run on the server that has the store's keys.

use super::tls::CertificateCheck;
use super::{Endpoint, PasswordSource, ServerAddress};
use crate::error::OpenError;

impl Endpoint {
    /// Returns the redis-cli command, with the options that connect to this server.
    pub(crate) async fn redis_cli_command(&self) -> String {
        self.format_redis_cli_command(self.resolve_async().await)
    }

    /// Blocking variant of [`Endpoint::redis_cli_command`].
    pub(crate) fn redis_cli_command_blocking(&self) -> String {
        self.format_redis_cli_command(self.resolve())
    }

    /// Formats the command for a resolved server, or for the first host of the URL if that failed.
    fn format_redis_cli_command(&self, resolved: Result<ServerAddress, OpenError>) -> String {
        let mut command = String::from("redis-cli");
        if let Some(ServerAddress { host, port }) = resolved.ok().as_ref().or(self.hosts.first()) {
            command += &format!(" -h {} -p {port}", shell_quote(host.as_bytes()));
        }
        command += &format!(" -n {}", self.database);
        match self.tls.as_ref().map(|tls| tls.certificate_check()) {
            None => {}
            Some(CertificateCheck::None) => command += " --tls --insecure",
            Some(CertificateCheck::Issuer | CertificateCheck::IssuerAndHost) => command += " --tls",
        }
        if let Some(login) = &self.login {
            let user = login.user.as_ref().map(|user| format!(" --user {}", shell_quote(user.as_bytes())));
            command += &user.unwrap_or_default();
            // redis-cli reads a password from the environment itself.
            command += if login.password_source == PasswordSource::Url { " --askpass" } else { "" };
        }
        command
    }
}

/// Quotes an argument for the shell.
pub(crate) fn shell_quote(arg: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(byte);
    match std::str::from_utf8(arg) {
        Ok(text) if !text.is_empty() && arg.iter().all(is_plain) => text.into(),
        Ok(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        Ok(_) | Err(_) => {
            let bytes = arg.iter().map(|byte| match byte {
                byte if is_plain(byte) => char::from(*byte).to_string(),
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
        for (arg, quoted) in [
            (b"record:1".as_slice(), "record:1"),
            (b"", "''"),
            (b"{pointsman}:objects.with.events", "'{pointsman}:objects.with.events'"),
            (b"it's here", r"'it'\''s here'"),
            ("caf\u{e9}".as_bytes(), "'caf\u{e9}'"),
            (b"a\nb", r"$'a\x0ab'"),
            (b"\xff'", r"$'\xff\x27'"),
        ] {
            assert_eq!(shell_quote(arg), quoted);
        }
    }

    #[test]
    fn redis_cli_command_names_the_server_and_hides_the_password() {
        let command = |url| {
            let endpoint = Endpoint::parse(url).unwrap();
            endpoint.format_redis_cli_command(Ok(endpoint.hosts[0].clone()))
        };
        assert_eq!(command("redis://db.example:7000/3"), "redis-cli -h db.example -p 7000 -n 3");
        assert_eq!(command("redis://ann:s3cret@db"), "redis-cli -h db -p 6379 -n 0 --user ann --askpass");
        assert_eq!(command("redis://:s3cret@db"), "redis-cli -h db -p 6379 -n 0 --askpass");
        assert_eq!(command("rediss://db"), "redis-cli -h db -p 6379 -n 0 --tls");
        assert_eq!(command("rediss://db?sslmode=require"), "redis-cli -h db -p 6379 -n 0 --tls --insecure");
    }
}
