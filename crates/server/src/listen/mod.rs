//! The accept loop of the HTTP server: admits, serves, refuses and closes connections.
//!
//! ```text
//!  admission              which connections are admitted, and which one is closed for a new one
//!  refusal                503 for a connection beyond all limits
//!  lingering              how long clients have to read the response before their connection is closed
//!  write_timeout          disconnects clients that do not read, or that read too slowly
//!  parse_error_responses  problem bodies for requests that cannot be parsed
//!  open_file_limit        how many connections the open file limit allows
//! ```
//!
//! Limits: the number of connections, the time for the head of a request (which also closes idle connections), the size
//! and number of headers, and the time in which a client must read its response.

mod admission;
mod lingering;
mod open_file_limit;
mod parse_error_responses;
mod refusal;
mod write_timeout;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use admission::AdmittedConnection;
pub(crate) use admission::{
    ConnectionAdmission, ConnectionHandle, ConnectionShortage, RequestAdmission, RequestPurpose,
};
use lingering::LingeringConnections;
pub(crate) use open_file_limit::raise_open_file_limit_for_connections;
use parse_error_responses::ParseErrorResponseStream;
use refusal::refuse_with_503;
use write_timeout::{SlowReaderLimits, WriteTimeoutStream};

use crate::limits::ConnectionMemoryPermits;

/// How long the head of a request may take, and how long a connection may be idle.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 << 10;
/// The most bytes of a response that are buffered beyond the piece that is being written.
const MAX_BUFFERED_RESPONSE_BYTES: usize = 128 << 10;
/// How slowly a client may read its response.
const SLOW_READER_LIMITS: SlowReaderLimits = SlowReaderLimits {
    max_write_wait: Duration::from_secs(60),
    grace_period: Duration::from_secs(20),
    min_bytes_per_second: 16 << 10,
};

/// Accepts connections until `stop_signal` is cancelled, then waits up to `drain_timeout` for requests to finish.
pub(crate) async fn serve_connections(
    listener: TcpListener,
    router: Router,
    admission: Arc<ConnectionAdmission>,
    stop_signal: CancellationToken,
    drain_timeout: Duration,
) {
    let server = ConnectionServer {
        router,
        graceful_shutdown: GracefulShutdown::new(),
        force_close_signal: CancellationToken::new(),
        lingering_connections: Arc::default(),
    };
    loop {
        let (stream, address) = tokio::select! {
            biased;
            () = stop_signal.cancelled() => break,
            accepted = accept_connection(&listener) => accepted,
        };
        match admission.admit(address.ip(), Instant::now()) {
            Some(admitted) => server.serve_connection(stream, admitted),
            None => server.refuse_connection(stream),
        }
    }
    drop(listener);
    let ConnectionServer { graceful_shutdown, force_close_signal, .. } = server;
    if timeout(drain_timeout, graceful_shutdown.shutdown()).await.is_err() {
        tracing::warn!(
            "requests did not finish within the drain time; closing their connections without a response. Their \
             clients must check whether a change was made"
        );
        force_close_signal.cancel();
    }
}

/// Accepts the next connection. Errors are transient (a client that left, too many open files) and retried.
async fn accept_connection(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Responses are written whole; waiting for more data would only delay them.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            Err(error) if is_client_disconnect(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection; retrying. If this persists, check the limit of open files");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn is_client_disconnect(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Serves or refuses accepted connections; has the state that all connections share.
struct ConnectionServer {
    router: Router,
    graceful_shutdown: GracefulShutdown,
    force_close_signal: CancellationToken,
    /// Connections that were refused or evicted, while their clients read the response.
    lingering_connections: Arc<LingeringConnections>,
}

impl ConnectionServer {
    fn refuse_connection(&self, stream: TcpStream) {
        let lingering = self.lingering_connections.clone();
        tokio::spawn(async move { lingering.run_for_linger_time(refuse_with_503(stream)).await });
    }

    /// Serves a connection until it ends or is evicted. Its requests carry a [`ConnectionHandle`].
    fn serve_connection(&self, stream: TcpStream, admitted: AdmittedConnection) {
        let memory = ConnectionMemoryPermits::default();
        let io = TokioIo::new(ParseErrorResponseStream::new(WriteTimeoutStream::new(
            stream,
            SLOW_READER_LIMITS,
            memory.clone(),
        )));
        let router = TowerToHyperService::new(self.router.clone());
        let connection = admitted.connection.clone();
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            let in_progress = connection.begin_request();
            request.extensions_mut().insert(connection.clone());
            let response = router.call(request);
            async move {
                let _in_progress = in_progress;
                response.await
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_HEAD_TIMEOUT)
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_BUFFERED_RESPONSE_BYTES)
            .serve_connection(io, service);
        let connection = self.graceful_shutdown.watch(connection);
        let (force_close_signal, lingering) =
            (self.force_close_signal.clone(), self.lingering_connections.clone());
        tokio::spawn(async move {
            let connection = force_close_signal.run_until_cancelled(connection);
            let serving =
                memory.run_and_count_permits(serve_until_evicted(&admitted, &lingering, connection));
            if let Some(Some(Err(error))) = serving.await {
                tracing::debug!(%error, "connection ended with an error; its client disconnected, was too slow, or sent no valid HTTP");
            }
        });
    }
}

/// Runs a connection until it ends or is evicted. A request that has been received by then, or that follows on a
/// connection within its grace period, still gets its response.
async fn serve_until_evicted<T>(
    admitted: &AdmittedConnection,
    lingering: &LingeringConnections,
    connection: impl Future<Output = T>,
) -> Option<T> {
    let mut connection = pin!(connection);
    tokio::select! {
        // The connection is polled first, so that data that has been received becomes a request.
        biased;
        ended = connection.as_mut() => return Some(ended),
        () = admitted.connection.wait_until_evicted() => {}
    }
    if !admitted.connection.has_request_in_progress() && !admitted.is_within_grace_period(Instant::now()) {
        return None;
    }
    lingering.run_for_linger_time(connection).await
}
