//! Clients that take their time, or never come to an end. The server ends them; nobody else waits for them.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Far longer than the server waits for anybody.
const BOUND: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// What a slow client does: what it sends at once, and what it then drips, byte by byte, for ever.
pub(crate) struct Slow {
    pub(crate) name: &'static str,
    at_once: String,
    drip: Option<&'static [u8]>,
    /// Whether the server can tell it why.
    pub(crate) answered: bool,
}

pub(crate) fn clients(token: &str) -> Vec<Slow> {
    let head = format!("POST /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n");
    let slow = |name, at_once: String, drip, answered| Slow { name, at_once, drip, answered };
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

impl Slow {
    /// Plays the client until the server ends the connection, and tells what it said.
    pub(crate) async fn play(&self, address: &str) -> String {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut reading, mut writing) = stream.into_split();
        writing.write_all(self.at_once.as_bytes()).await.unwrap();
        let dripping = async {
            if let Some(drip) = self.drip {
                for byte in drip.iter().cycle() {
                    if writing.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    sleep(PAUSE).await;
                }
            }
            std::future::pending::<()>().await;
        };
        let mut said = vec![];
        let ended = timeout(BOUND, async {
            tokio::select! {
                () = dripping => {}
                // A reset is an end as well.
                _ = reading.read_to_end(&mut said) => {}
            }
        });
        assert!(ended.await.is_ok(), "a client that {} was never ended", self.name);
        String::from_utf8_lossy(&said).into_owned()
    }
}
