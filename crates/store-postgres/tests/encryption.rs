//! The meaning of `sslmode`, on a server with its own certificate.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use pointsman_core::Timestamp;
use pointsman_core::store::{Journal, Store};
use pointsman_store_postgres::{OpenError, Postgres as Database};
use pointsman_testing::{PostgresServer, PostgresSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// A server with a certificate for `localhost`; the certificates of its issuer and of another one, which did not issue
/// it.
struct EncryptedServer {
    server: PostgresServer,
    issuer_certificate: PathBuf,
    untrusted_certificate: PathBuf,
    _folder: TempDir,
}

fn new_issuer(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl EncryptedServer {
    fn start() -> Self {
        let server = PostgresServer::start(PostgresSettings::default()).unwrap();
        let folder = TempDir::new().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (trusted_issuer, untrusted_issuer) = (new_issuer("trusted"), new_issuer("untrusted"));
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        let certificate = params.signed_by(&key, &trusted_issuer).unwrap();
        let write_file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let certificate = write_file("server.crt", certificate.pem());
        let key = write_file("server.key", key.serialize_pem());
        restrict_key_file(&key, server.pid().unwrap());
        for (name, path) in [("ssl_cert_file", &certificate), ("ssl_key_file", &key)] {
            server.query("postgres", &format!("ALTER SYSTEM SET {name} = '{}'", path.display())).unwrap();
        }
        server.query("postgres", "ALTER SYSTEM SET ssl = on").unwrap();
        server.stop().unwrap();
        server.start_again().unwrap();
        let (issuer_certificate, untrusted_certificate) = (
            write_file("issuer.crt", trusted_issuer.pem()),
            write_file("untrusted.crt", untrusted_issuer.pem()),
        );
        Self { server, issuer_certificate, untrusted_certificate, _folder: folder }
    }

    fn url(&self, host: &str, parameters: &str) -> String {
        format!("postgres://postgres@{host}:{}/postgres?{parameters}", self.server.address().port())
    }

    /// Opens a store and returns whether its connections are encrypted.
    async fn open_and_check_encryption(&self, host: &str, parameters: &str) -> Result<bool, String> {
        let name = parameters.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let url = self.url(host, &format!("{parameters}&application_name={name}"));
        let store =
            Database::open(&url, Timestamp::from_micros(1)).await.map_err(|error| error.to_string())?;
        store.read_journal_range().await.unwrap();
        let name = &name[..name.len().min(63)];
        let sql = format!(
            "SELECT bool_and(s.ssl)::text FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
             WHERE a.application_name = '{name}'"
        );
        let encrypted = self.server.query("postgres", &sql).unwrap()[0][0].as_deref() == Some("true");
        store.close();
        Ok(encrypted)
    }
}

/// Makes the server the owner of its key file, as PostgreSQL requires.
fn restrict_key_file(key: &Path, server_pid: u32) {
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let owner = std::fs::metadata(format!("/proc/{server_pid}")).unwrap();
    chown(key, Some(owner.uid()), Some(owner.gid())).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sslmode_encrypts_and_verifies_as_documented() {
    let server = EncryptedServer::start();
    let (issuer, untrusted) = (server.issuer_certificate.display(), server.untrusted_certificate.display());
    assert_eq!(server.open_and_check_encryption("127.0.0.1", "sslmode=disable").await, Ok(false));
    assert_eq!(server.open_and_check_encryption("127.0.0.1", "sslmode=prefer").await, Ok(true));
    assert_eq!(server.open_and_check_encryption("127.0.0.1", "sslmode=require").await, Ok(true));
    assert_eq!(
        server
            .open_and_check_encryption("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={issuer}"))
            .await,
        Ok(true)
    );
    assert_eq!(
        server
            .open_and_check_encryption("localhost", &format!("sslmode=verify-full&sslrootcert={issuer}"))
            .await,
        Ok(true)
    );
    for (host, parameters) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={issuer}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={untrusted}")),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={untrusted}")),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={untrusted}")),
    ] {
        let error = server.open_and_check_encryption(host, &parameters).await.unwrap_err();
        assert!(error.contains("invalid peer certificate"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unencrypted_server_is_accepted_only_with_sslmode_prefer() {
    let server = PostgresServer::start(PostgresSettings::default()).unwrap();
    let url = server.create_database().unwrap();
    let opened = Database::open(&format!("{url}?sslmode=prefer"), Timestamp::from_micros(1)).await;
    opened.unwrap().close();
    let opened = Database::open(&format!("{url}?sslmode=require"), Timestamp::from_micros(1)).await;
    assert!(matches!(opened, Err(OpenError::TlsFailed { .. })));
}
