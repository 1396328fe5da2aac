//! Clients that send slowly or never finish. The server disconnects them; other clients are not delayed.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// The time after which the server must have disconnected a slow client. It is longer than any timeout of the server.
const MAX_CLIENT_LIFETIME: Duration = Duration::from_secs(120);
/// The time between two bytes that a slow client sends.
const BYTE_INTERVAL: Duration = Duration::from_millis(200);

/// A slow client: it sends a prefix at once, and then repeats further bytes one by one.
pub(crate) struct SlowClient {
    pub(crate) behaviour: &'static str,
    prefix: String,
    repeated_bytes: Option<&'static [u8]>,
    /// Whether the server responds with 408: it can once it has read the head.
    pub(crate) gets_timeout_response: bool,
}

/// Returns a client for each way of sending slowly.
pub(crate) fn all_slow_clients(token: &str) -> Vec<SlowClient> {
    let head = format!("POST /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n");
    let slow = |name, prefix: String, repeated_bytes, gets_response| SlowClient {
        behaviour: name,
        prefix,
        repeated_bytes,
        gets_timeout_response: gets_response,
    };
    vec![
        slow("says nothing", String::new(), None, false),
        slow("begins a line", "GET / HT".into(), None, false),
        slow("never ends its head", "GET / HTTP/1.1\r\nhost: x\r\n".into(), Some(b"x: y\r\n"), false),
        slow("never ends its address", "GET /".into(), Some(b"a"), false),
        slow("holds its body back", format!("{head}content-length: 100\r\n\r\n{{\"type\""), None, true),
        slow("drips its body", format!("{head}content-length: 1000\r\n\r\n"), Some(b" "), true),
        slow("drips chunks", format!("{head}transfer-encoding: chunked\r\n\r\n"), Some(b"1\r\n \r\n"), true),
        slow("drips a chunk's size", format!("{head}transfer-encoding: chunked\r\n\r\n"), Some(b"0"), true),
    ]
}

impl SlowClient {
    /// Runs the client until the server closes the connection, and returns the response.
    pub(crate) async fn run(&self, address: &str) -> String {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut reading, mut writing) = stream.into_split();
        writing.write_all(self.prefix.as_bytes()).await.unwrap();
        let sending = async {
            if let Some(bytes) = self.repeated_bytes {
                for byte in bytes.iter().cycle() {
                    if writing.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    sleep(BYTE_INTERVAL).await;
                }
            }
            std::future::pending::<()>().await;
        };
        let mut response = vec![];
        let ended = timeout(MAX_CLIENT_LIFETIME, async {
            tokio::select! {
                () = sending => {}
                // A reset counts as closed.
                _ = reading.read_to_end(&mut response) => {}
            }
        });
        assert!(ended.await.is_ok(), "a client that {} was not disconnected", self.behaviour);
        String::from_utf8_lossy(&response).into_owned()
    }
}
