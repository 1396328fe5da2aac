//! Refuses a connection before its request is read.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::problem::Problem;

/// Responds with 503 and waits until the client has read the response.
pub(super) async fn refuse_with_503(mut stream: TcpStream) -> io::Result<()> {
    let problem = Problem::unavailable(
        "all connections are in use, including the reserve for health checks and producers; try again, or raise \
         `server.max_connections`",
    );
    stream.write_all(problem.into_raw_response().as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with unread data would reset the connection before the client has read the response.
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}
