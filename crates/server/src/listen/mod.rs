//! The accept loop.
//!
//! Every connection is bounded: in the time its request's head may take (which also ends idle ones), in the
//! size and number of its headers, in how long it may refuse to read its answer, and in number. One too many
//! is told so and closed.

mod patient;
mod room;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use patient::Patient;
pub(crate) use room::connections;

/// How long the head of a request may take, and how long a connection may stand idle.
const HEAD: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 << 10;
/// How long a client may leave its answer unread.
const UNREAD: Duration = Duration::from_secs(60);
/// How many connections are turned away in good manners at a time.
const MAX_REFUSALS: usize = 64;
/// What a connection beyond the cap is told.
const FULL: &str = "{\"type\":\"urn:pointsman:problem:unavailable\",\"title\":\"Not now\",\"status\":503,\
    \"detail\":\"too many connections\"}";

/// Accepts connections until `stopping`, then lets requests end for up to `drain`.
pub(crate) async fn run(
    listener: TcpListener,
    router: Router,
    max_connections: usize,
    stopping: CancellationToken,
    drain: Duration,
) {
    let slots = Arc::new(Semaphore::new(max_connections));
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
    let graceful = GracefulShutdown::new();
    let cut = CancellationToken::new();
    loop {
        let stream = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            accepted = accept(&listener) => accepted,
        };
        match slots.clone().try_acquire_owned() {
            Ok(slot) => serve(stream, router.clone(), slot, &graceful, cut.clone()),
            Err(_) => {
                if let Ok(permit) = refusals.clone().try_acquire_owned() {
                    tokio::spawn(timeout(Duration::from_secs(1), refuse(stream, permit)));
                }
            }
        }
    }
    drop(listener);
    if timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time; their connections are cut");
        cut.cancel();
    }
}

/// The next connection. Whatever keeps one from being accepted passes: a client that left, too many files.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; waiting for more to send would only delay them.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn serve(
    stream: TcpStream,
    router: Router,
    slot: OwnedSemaphorePermit,
    graceful: &GracefulShutdown,
    cut: CancellationToken,
) {
    let io = TokioIo::new(Patient::new(stream, UNREAD));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .serve_connection(io, TowerToHyperService::new(router));
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Some(Err(error)) = cut.run_until_cancelled(connection).await {
            tracing::debug!(%error, "a connection ended badly");
        }
        drop(slot);
    });
}

async fn refuse(mut stream: TcpStream, _permit: OwnedSemaphorePermit) -> io::Result<()> {
    let length = FULL.len();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(FULL.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with something unread would reset the connection under the answer.
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}
