//! One reader: follows the journal over a connection of its own, and checks what it gets.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::crowd::Ledger;
use super::house::{TYPE, key};

/// How the journal is followed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    LongPoll,
    Stream,
}

pub(super) struct Reader {
    pub(super) way: Way,
    /// The object that it follows; everything if there is none.
    pub(super) only: Option<usize>,
    /// The number of the event that comes next, for each object from `first` on.
    pub(super) first: usize,
    pub(super) next: Vec<u64>,
    /// The last event it has got.
    pub(super) after: u64,
    pub(super) ledger: Arc<Ledger>,
}

/// An event, as far as a reader looks at it. The engine's own events have no value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    event_id: u64,
    value: Option<Mark>,
}

/// What producers write into their events.
#[derive(Debug, Deserialize)]
struct Mark {
    object: usize,
    n: u64,
    at: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seq {
    #[serde(rename = "TYPE")]
    kind: String,
    #[serde(default)]
    event_snapshots: Vec<Seen>,
    last_event_id: Option<u64>,
}

impl Reader {
    /// Reads for ever; ends only if something is wrong.
    pub(super) async fn read(mut self, server: SocketAddr, token: String) -> anyhow::Result<()> {
        let stream = TcpStream::connect(server).await.context("it cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut server = Line { sender, token };
        // The connection and what goes over it are one task: they live and end together.
        tokio::select! {
            ended = connection => {
                ended?;
                bail!("the server has closed the connection");
            }
            failed = self.follow(&mut server) => failed,
        }
    }

    async fn follow(&mut self, server: &mut Line) -> anyhow::Result<()> {
        match self.way {
            Way::LongPoll => loop {
                self.poll(server).await?;
            },
            Way::Stream => self.stream(server).await,
        }
    }

    async fn poll(&mut self, server: &mut Line) -> anyhow::Result<()> {
        let answer = server.get(&format!("/api/v1/events?timeout=30s&{}", self.query())).await?;
        let text = answer.into_body().collect().await?.to_bytes();
        let seq: Seq = serde_json::from_slice(&text)?;
        for seen in &seq.event_snapshots {
            self.got(seen)?;
        }
        match (seq.kind.as_str(), seq.last_event_id) {
            ("NonEmpty", _) => {}
            ("Empty", Some(last)) => self.after = last,
            (other, _) => bail!("it was answered {other} after {}", self.after),
        }
        Ok(())
    }

    async fn stream(&mut self, server: &mut Line) -> anyhow::Result<()> {
        let answer = server.get(&format!("/api/v1/stream?{}", self.query())).await?;
        let mut body = answer.into_body();
        let mut frames = Frames::default();
        while let Some(piece) = body.frame().await {
            let Ok(piece) = piece?.into_data() else { continue };
            frames.add(&piece);
            while let Some((event, data)) = frames.next() {
                match event.as_str() {
                    TYPE => self.got(&serde_json::from_str(&data)?)?,
                    "Torn" => bail!("the stream is torn after {}", self.after),
                    // The engine's own events, and what becomes of tasks.
                    _ => {}
                }
            }
        }
        bail!("the stream has ended")
    }

    fn query(&self) -> String {
        let filter = self.only.map(|object| format!("&return={TYPE}&key={}", key(object)));
        format!("after={}{}", self.after, filter.unwrap_or_default())
    }

    /// An event has come. It must be the one after the last.
    fn got(&mut self, seen: &Seen) -> anyhow::Result<()> {
        let id = seen.event_id;
        ensure!(id > self.after, "event {id} came after event {}", self.after);
        self.after = id;
        let Some(Mark { object, n, at }) = seen.value else { return Ok(()) };
        let next = object.checked_sub(self.first).and_then(|place| self.next.get_mut(place));
        let next = next.with_context(|| format!("object {object} is not one of its own"))?;
        ensure!(n == *next, "object {object}: event number {n} came in place of number {next}");
        *next += 1;
        self.ledger.enter(id, at);
        Ok(())
    }
}

/// A connection to the server.
struct Line {
    sender: SendRequest<Empty<Bytes>>,
    token: String,
}

impl Line {
    async fn get(&mut self, path: &str) -> anyhow::Result<Response<Incoming>> {
        let request = Request::get(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.token))
            .body(Empty::new())?;
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        ensure!(answer.status() == StatusCode::OK, "{path} is answered with {}", answer.status());
        Ok(answer)
    }
}

/// Takes server-sent events apart.
#[derive(Debug, Default)]
struct Frames {
    text: Vec<u8>,
    /// How much of it has been read.
    read: usize,
    event: String,
    data: String,
}

impl Frames {
    fn add(&mut self, piece: &[u8]) {
        self.text.drain(..std::mem::take(&mut self.read));
        self.text.extend_from_slice(piece);
    }

    /// The next whole one: its type and its data.
    fn next(&mut self) -> Option<(String, String)> {
        loop {
            let rest = &self.text[self.read..];
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = String::from_utf8_lossy(&rest[..end]);
            if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut self.event);
            } else if let Some(data) = line.strip_prefix("data: ") {
                self.data.push_str(data);
            }
            let is_over = line.is_empty();
            self.read += end + 1;
            if is_over {
                let frame = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
                // A comment that keeps the connection open has neither.
                if !frame.0.is_empty() {
                    return Some(frame);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_put_together_from_whatever_comes() {
        let text =
            ": keep-alive\nid: 3\n\nid: 4\nevent: a.b\ndata: {\"x\":\ndata: 1}\n\nevent: Torn\ndata: {}\n\n";
        for size in [1, 2, 7, text.len()] {
            let mut frames = Frames::default();
            let mut met = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                frames.add(piece);
                met.extend(std::iter::from_fn(|| frames.next()));
            }
            let told = [("a.b", "{\"x\":1}"), ("Torn", "{}")];
            assert_eq!(met, told.map(|(event, data)| (event.to_owned(), data.to_owned())));
        }
    }

    #[test]
    fn what_is_missing_twice_or_out_of_order_is_noticed() {
        let seen = |event_id, n| Seen { event_id, value: Some(Mark { object: 7, n, at: None }) };
        let reader = || Reader {
            way: Way::Stream,
            only: Some(7),
            first: 7,
            next: vec![5],
            after: 10,
            ledger: Arc::new(Ledger::new(1)),
        };
        let tell = |events: &[Seen]| {
            let mut reader = reader();
            events.iter().try_for_each(|seen| reader.got(seen))
        };
        assert!(tell(&[seen(11, 5), seen(12, 6)]).is_ok());
        assert!(tell(&[seen(11, 6)]).is_err(), "one is missing");
        assert!(tell(&[seen(11, 5), seen(11, 5)]).is_err(), "one came twice");
        assert!(tell(&[seen(11, 5), seen(12, 5)]).is_err(), "one was journaled twice");
        assert!(tell(&[seen(12, 5), seen(11, 6)]).is_err(), "the ids go backwards");
        let foreign = Seen { event_id: 11, value: Some(Mark { object: 8, n: 5, at: None }) };
        assert!(tell(&[foreign]).is_err(), "another's");
    }
}
