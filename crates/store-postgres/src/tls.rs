//! Whom to trust at the other end of a connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connect::bad;
use crate::error::OpenError;

/// The meaning of `sslmode` and `sslrootcert`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Nothing is encrypted.
    Disable,
    /// Encrypted if the server can.
    Prefer,
    /// Encrypted, whoever it is.
    Require,
    /// Encrypted, and the certificate was issued by one of these.
    Issuer(PathBuf),
    /// And it is the host's own.
    Host(PathBuf),
}

impl Trust {
    pub(crate) fn read(mode: Option<&str>, roots: Option<&str>) -> Result<Self, OpenError> {
        let file = |mode: &str| {
            let missing = || {
                let what = format!(
                    "is needed for sslmode={mode}: a file with the certificates of those whom you trust, for instance \
                     /etc/ssl/certs/ca-certificates.crt"
                );
                bad("sslrootcert", what)
            };
            roots.map(PathBuf::from).ok_or_else(missing)
        };
        match (mode.unwrap_or("prefer"), roots) {
            ("disable", _) => Ok(Self::Disable),
            ("prefer", _) => Ok(Self::Prefer),
            ("require", None) => Ok(Self::Require),
            // Whoever names certificates wants them looked at; so does libpq.
            ("require", Some(_)) => file("require").map(Self::Issuer),
            ("verify-ca", _) => file("verify-ca").map(Self::Issuer),
            ("verify-full", _) => file("verify-full").map(Self::Host),
            (other, _) => {
                let known = "disable, prefer, require, verify-ca or verify-full";
                Err(bad("sslmode", format!("is `{other}`, and can only be {known}")))
            }
        }
    }

    pub(crate) fn mode(&self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::Issuer(_) | Self::Host(_) => SslMode::Require,
        }
    }

    fn roots(&self) -> Option<&PathBuf> {
        match self {
            Self::Disable | Self::Prefer | Self::Require => None,
            Self::Issuer(file) | Self::Host(file) => Some(file),
        }
    }
}

pub(crate) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let issuers = match trust.roots() {
        Some(file) => {
            let roots = Arc::new(read_roots(file)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
            Some(verifier.map_err(|error| bad("sslrootcert", format!("cannot be used: {error}")))?)
        }
        None => None,
    };
    let check = Check { issuers, any_host: !matches!(trust, Trust::Host(_)), provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| OpenError::BadUrl(error.to_string()))?;
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(check)).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

pub(crate) fn read_roots(file: &Path) -> Result<RootCertStore, OpenError> {
    let unread = |what: String| bad("sslrootcert", format!("names {}, which {what}", file.display()));
    let pem = std::fs::read(file).map_err(|error| unread(format!("cannot be read: {error}")))?;
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| unread(format!("is no PEM file: {error}")))?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found);
    if added == 0 {
        return Err(unread("holds no certificate".into()));
    }
    Ok(roots)
}

/// Looks at a server's certificate as far as `sslmode` asks for it.
#[derive(Debug)]
struct Check {
    /// None: any certificate will do.
    issuers: Option<Arc<WebPkiServerVerifier>>,
    any_host: bool,
    provider: Arc<CryptoProvider>,
}

impl Check {
    /// A certificate that cannot be read proves nothing; where nothing needs to be proved, that is no fault. Many servers
    /// have one in a format of old that TLS libraries no longer read.
    fn lenient(
        &self,
        verified: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match (verified, &self.issuers) {
            (
                Err(Error::InvalidCertificate(CertificateError::Other(_) | CertificateError::BadEncoding)),
                None,
            ) => Ok(HandshakeSignatureValid::assertion()),
            (verified, _) => verified,
        }
    }
}

impl ServerCertVerifier for Check {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(issuers) = &self.issuers else { return Ok(ServerCertVerified::assertion()) };
        // The name is looked at last: who fails only there was issued by one who is trusted.
        match issuers.verify_server_cert(certificate, between, host, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_host => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.lenient(verify_tls12_signature(message, certificate, signature, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.lenient(verify_tls13_signature(message, certificate, signature, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
