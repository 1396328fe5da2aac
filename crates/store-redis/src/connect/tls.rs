//! TLS: which server certificates are accepted, and the client certificate.

use std::path::Path;
use std::sync::Arc;

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisResult, TlsCertificates};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::ServerAddress;
use super::url::bad_parameter_error;
use crate::error::OpenError;

/// Certificate check by `sslmode`, as in PostgreSQL URLs; all modes encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateCheck {
    /// Any certificate is accepted.
    None,
    /// The certificate must have a trusted issuer.
    Issuer,
    /// The certificate must also name the host.
    IssuerAndHost,
}

/// TLS settings of a connection.
#[derive(Clone)]
pub(super) struct TlsSettings {
    certificate_check: CertificateCheck,
    certificates: Arc<TlsCertificates>,
}

impl TlsSettings {
    /// Reads the parameters of a URL. Certificate files are read now, so that mistakes are reported at once.
    pub(super) fn from_parameters<'a>(
        parameter: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, OpenError> {
        let roots =
            parameter("sslrootcert").map(|file| read_root_certificates(Path::new(file))).transpose()?;
        let certificate_check = match (parameter("sslmode").unwrap_or("verify-full"), &roots) {
            ("require", None) => CertificateCheck::None,
            // Root certificates in the URL mean that they are to be checked.
            ("require", Some(_)) | ("verify-ca", _) => CertificateCheck::Issuer,
            ("verify-full", _) => CertificateCheck::IssuerAndHost,
            (other, _) => {
                let known = "require, verify-ca or verify-full; an unencrypted URL begins with redis://";
                return Err(bad_parameter_error("sslmode", format!("is `{other}`, and can only be {known}")));
            }
        };
        let client_tls = match (parameter("sslcert"), parameter("sslkey")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(read_client_certificate(Path::new(certificate), Path::new(key))?)
            }
            (Some(_), None) => {
                return Err(bad_parameter_error("sslcert", "needs sslkey, the file with its private key"));
            }
            (None, Some(_)) => {
                return Err(bad_parameter_error("sslkey", "needs sslcert, the file with its certificate"));
            }
        };
        // The driver uses the default provider of the process; without this it could find two candidates.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            certificate_check,
            certificates: Arc::new(TlsCertificates { client_tls, root_cert: roots }),
        })
    }

    pub(super) fn certificate_check(&self) -> CertificateCheck {
        self.certificate_check
    }

    pub(super) fn connection_address(&self, address: &ServerAddress) -> ConnectionAddr {
        let (host, port) = (address.host.clone(), address.port);
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure: self.certificate_check == CertificateCheck::None,
            tls_params: None,
        }
    }

    pub(super) fn build_client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        let client = Client::build_with_tls(info, (*self.certificates).clone())?;
        match self.certificate_check {
            CertificateCheck::None | CertificateCheck::IssuerAndHost => Ok(client),
            CertificateCheck::Issuer => {
                let info = client.get_connection_info().clone();
                let mut address = info.addr().clone();
                address.set_danger_accept_invalid_hostnames(true);
                Client::open(info.set_addr(address))
            }
        }
    }
}

/// Reads the trusted root certificates as PEM.
fn read_root_certificates(file: &Path) -> Result<Vec<u8>, OpenError> {
    let bad_file_error = |problem: String| bad_file_error("sslrootcert", file, &problem);
    let pem = std::fs::read(file).map_err(|error| bad_file_error(format!("cannot be read: {error}")))?;
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_slice_iter(&pem) {
        let found = found.map_err(|error| bad_file_error(format!("is no PEM file: {error}")))?;
        roots.add(found).map_err(|error| {
            bad_file_error(format!("contains a certificate that cannot be used: {error}"))
        })?;
    }
    match roots.is_empty() {
        true => Err(bad_file_error("contains no certificate".into())),
        false => Ok(pem),
    }
}

/// Reads the client certificate and its private key.
fn read_client_certificate(certificate: &Path, key: &Path) -> Result<ClientTlsConfig, OpenError> {
    let read = |name: &str, file: &Path| {
        std::fs::read(file).map_err(|error| bad_file_error(name, file, &format!("cannot be read: {error}")))
    };
    let (client_cert, client_key) = (read("sslcert", certificate)?, read("sslkey", key)?);
    match CertificateDer::pem_slice_iter(&client_cert).next() {
        Some(Ok(_)) => {}
        Some(Err(error)) => {
            return Err(bad_file_error("sslcert", certificate, &format!("is no PEM file: {error}")));
        }
        None => return Err(bad_file_error("sslcert", certificate, "contains no certificate")),
    }
    PrivateKeyDer::from_pem_slice(&client_key)
        .map_err(|error| bad_file_error("sslkey", key, &format!("contains no private key: {error}")))?;
    Ok(ClientTlsConfig { client_cert, client_key })
}

fn bad_file_error(name: &str, file: &Path, problem: &str) -> OpenError {
    bad_parameter_error(name, format!("names {}, which {problem}", file.display()))
}
