//! TLS modes and the verification of server certificates.

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

use crate::connect::bad_parameter_error;
use crate::error::OpenError;

/// The meaning of `sslmode` and `sslrootcert`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// Nothing is encrypted.
    Disable,
    /// Encrypted if the server supports it, without verification.
    Prefer,
    /// Encrypted, without verification.
    Require,
    /// Encrypted, and the certificate is issued by one of the authorities in this file.
    VerifyCa(PathBuf),
    /// Encrypted, and one of the authorities in this file issued the certificate for the host name.
    VerifyFull(PathBuf),
}

impl TlsMode {
    pub(crate) fn from_parameters(
        mode: Option<&str>,
        root_certificates: Option<&str>,
    ) -> Result<Self, OpenError> {
        let required_file = |mode: &str| {
            let missing_error = || {
                let problem = format!(
                    "is required for sslmode={mode}: a file with the trusted root certificates, for instance \
                     /etc/ssl/certs/ca-certificates.crt"
                );
                bad_parameter_error("sslrootcert", problem)
            };
            root_certificates.map(PathBuf::from).ok_or_else(missing_error)
        };
        match (mode.unwrap_or("prefer"), root_certificates) {
            ("disable", _) => Ok(Self::Disable),
            ("prefer", _) => Ok(Self::Prefer),
            ("require", None) => Ok(Self::Require),
            // Given root certificates are used to verify the server, as in libpq.
            ("require", Some(_)) => required_file("require").map(Self::VerifyCa),
            ("verify-ca", _) => required_file("verify-ca").map(Self::VerifyCa),
            ("verify-full", _) => required_file("verify-full").map(Self::VerifyFull),
            (other, _) => {
                let valid_values = "disable, prefer, require, verify-ca or verify-full";
                Err(bad_parameter_error("sslmode", format!("is `{other}`; valid values are {valid_values}")))
            }
        }
    }

    pub(crate) fn driver_ssl_mode(&self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa(_) | Self::VerifyFull(_) => SslMode::Require,
        }
    }

    fn root_certificates_file(&self) -> Option<&PathBuf> {
        match self {
            Self::Disable | Self::Prefer | Self::Require => None,
            Self::VerifyCa(file) | Self::VerifyFull(file) => Some(file),
        }
    }
}

/// Builds the TLS connector of a mode.
pub(crate) fn build_connector(tls_mode: &TlsMode) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let root_verifier =
        match tls_mode.root_certificates_file() {
            Some(file) => {
                let roots = Arc::new(read_root_certificates(file)?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                Some(verifier.map_err(|error| {
                    bad_parameter_error("sslrootcert", format!("cannot be used: {error}"))
                })?)
            }
            None => None,
        };
    let verifier = CertificateVerifier {
        root_verifier,
        accepts_any_host: !matches!(tls_mode, TlsMode::VerifyFull(_)),
        provider: provider.clone(),
    };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| OpenError::BadUrl(error.to_string()))?;
    let config =
        config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Reads a PEM file of trusted root certificates.
pub(crate) fn read_root_certificates(file: &Path) -> Result<RootCertStore, OpenError> {
    let file_error = |problem: String| {
        bad_parameter_error("sslrootcert", format!("names {}, which {problem}", file.display()))
    };
    let pem = std::fs::read(file).map_err(|error| file_error(format!("cannot be read: {error}")))?;
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| file_error(format!("is not a PEM file: {error}")))?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found);
    if added == 0 {
        return Err(file_error("contains no certificate".into()));
    }
    Ok(roots)
}

/// Verifies a server certificate as far as `sslmode` requires.
#[derive(Debug)]
struct CertificateVerifier {
    /// None: any certificate is accepted.
    root_verifier: Option<Arc<WebPkiServerVerifier>>,
    accepts_any_host: bool,
    provider: Arc<CryptoProvider>,
}

impl CertificateVerifier {
    /// Accepts an unreadable certificate if nothing has to be verified. Many servers have one in an old format that TLS
    /// libraries no longer read.
    fn accept_unreadable_certificate(
        &self,
        verified: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match (verified, &self.root_verifier) {
            (
                Err(Error::InvalidCertificate(CertificateError::Other(_) | CertificateError::BadEncoding)),
                None,
            ) => Ok(HandshakeSignatureValid::assertion()),
            (verified, _) => verified,
        }
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(root_verifier) = &self.root_verifier else { return Ok(ServerCertVerified::assertion()) };
        // The name is verified last: a certificate that fails only there is issued by a trusted authority.
        match root_verifier.verify_server_cert(certificate, intermediates, host, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.accepts_any_host => Ok(ServerCertVerified::assertion()),
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
        self.accept_unreadable_certificate(verify_tls12_signature(
            message,
            certificate,
            signature,
            algorithms,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.accept_unreadable_certificate(verify_tls13_signature(
            message,
            certificate,
            signature,
            algorithms,
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
