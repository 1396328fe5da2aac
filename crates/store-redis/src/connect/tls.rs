//! Whom to trust at the other end of an encrypted connection.

use std::path::Path;
use std::sync::Arc;

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisResult, TlsCertificates};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Address;
use super::url::bad;
use crate::error::OpenError;

/// The meaning of `sslmode`, as in the URLs of PostgreSQL, as far as all is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Whoever it is.
    Anyone,
    /// The certificate was issued by one who is trusted.
    Issuer,
    /// And it is the host's own.
    Host,
}

/// How a connection is encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    trust: Trust,
    certificates: Arc<TlsCertificates>,
}

impl Tls {
    /// From the parameters of a URL. Files are read now, so that a mistake is told at once.
    pub(super) fn read<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<Self, OpenError> {
        let roots = given("sslrootcert").map(|file| read_roots(Path::new(file))).transpose()?;
        let trust = match (given("sslmode").unwrap_or("verify-full"), &roots) {
            ("require", None) => Trust::Anyone,
            // Whoever names certificates wants them looked at.
            ("require", Some(_)) | ("verify-ca", _) => Trust::Issuer,
            ("verify-full", _) => Trust::Host,
            (other, _) => {
                let known = "require, verify-ca or verify-full; what is not encrypted begins with redis://";
                return Err(bad("sslmode", format!("is `{other}`, and can only be {known}")));
            }
        };
        let client_tls = match (given("sslcert"), given("sslkey")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(read_identity(Path::new(certificate), Path::new(key))?),
            (Some(_), None) => return Err(bad("sslcert", "needs sslkey, the file with its private key")),
            (None, Some(_)) => return Err(bad("sslkey", "needs sslcert, the file with its certificate")),
        };
        // The driver asks for whatever the process has settled on; without this it could find two to choose from.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self { trust, certificates: Arc::new(TlsCertificates { client_tls, root_cert: roots }) })
    }

    pub(super) fn trust(&self) -> Trust {
        self.trust
    }

    pub(super) fn address(&self, address: &Address) -> ConnectionAddr {
        let (host, port) = (address.host.clone(), address.port);
        ConnectionAddr::TcpTls { host, port, insecure: self.trust == Trust::Anyone, tls_params: None }
    }

    pub(super) fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        let client = Client::build_with_tls(info, (*self.certificates).clone())?;
        match self.trust {
            Trust::Anyone | Trust::Host => Ok(client),
            Trust::Issuer => {
                let info = client.get_connection_info().clone();
                let mut address = info.addr().clone();
                address.set_danger_accept_invalid_hostnames(true);
                Client::open(info.set_addr(address))
            }
        }
    }
}

/// The certificates of those who are trusted, as the driver takes them.
fn read_roots(file: &Path) -> Result<Vec<u8>, OpenError> {
    let unread = |what: String| unread("sslrootcert", file, &what);
    let pem = std::fs::read(file).map_err(|error| unread(format!("cannot be read: {error}")))?;
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_slice_iter(&pem) {
        let found = found.map_err(|error| unread(format!("is no PEM file: {error}")))?;
        roots
            .add(found)
            .map_err(|error| unread(format!("holds a certificate that cannot be used: {error}")))?;
    }
    match roots.is_empty() {
        true => Err(unread("holds no certificate".into())),
        false => Ok(pem),
    }
}

/// What we show to a server that wants to know who we are.
fn read_identity(certificate: &Path, key: &Path) -> Result<ClientTlsConfig, OpenError> {
    let read = |name: &str, file: &Path| {
        std::fs::read(file).map_err(|error| unread(name, file, &format!("cannot be read: {error}")))
    };
    let (client_cert, client_key) = (read("sslcert", certificate)?, read("sslkey", key)?);
    match CertificateDer::pem_slice_iter(&client_cert).next() {
        Some(Ok(_)) => {}
        Some(Err(error)) => return Err(unread("sslcert", certificate, &format!("is no PEM file: {error}"))),
        None => return Err(unread("sslcert", certificate, "holds no certificate")),
    }
    PrivateKeyDer::from_pem_slice(&client_key)
        .map_err(|error| unread("sslkey", key, &format!("holds no private key: {error}")))?;
    Ok(ClientTlsConfig { client_cert, client_key })
}

fn unread(name: &str, file: &Path, what: &str) -> OpenError {
    bad(name, format!("names {}, which {what}", file.display()))
}
