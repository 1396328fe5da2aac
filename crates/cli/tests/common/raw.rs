//! The least of an HTTP client: it sends bytes as they are, so that tests can send what no client would.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a server said.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Exchange {
    Answered(Answer),
    /// The connection was closed without a word.
    Closed,
    /// What came is no answer.
    Garbled(Vec<u8>),
    /// Nothing came, or only a part, for as long as one was willing to wait.
    Hung(Vec<u8>),
}

impl Exchange {
    pub(crate) fn answer(self) -> Option<Answer> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::Closed | Self::Garbled(_) | Self::Hung(_) => None,
        }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status of a problem document, which must say so itself and name the fault.
    pub(crate) fn problem(&self) -> u16 {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{body}");
        for member in ["type", "title", "detail"] {
            assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "no {member}: {body}");
        }
        self.status
    }
}

/// Sends bytes on a connection of their own and reads one answer. Both go on at the same time: a server may
/// answer before it has read everything.
pub(crate) async fn exchange(address: &str, bytes: &[u8], patience: Duration) -> Exchange {
    converse(address, bytes, false, patience).await
}

/// The same, and says with the last byte that no more will come: for requests that are not whole.
pub(crate) async fn exchange_and_close(address: &str, bytes: &[u8], patience: Duration) -> Exchange {
    converse(address, bytes, true, patience).await
}

async fn converse(address: &str, bytes: &[u8], close: bool, patience: Duration) -> Exchange {
    let Ok(stream) = TcpStream::connect(address).await else { return Exchange::Closed };
    let (mut reading, mut writing) = stream.into_split();
    let mut received = vec![];
    let sending = async {
        // A server that has answered may close before all of it was written.
        let _ = writing.write_all(bytes).await;
        if close {
            let _ = writing.shutdown().await;
        }
        std::future::pending::<()>().await;
    };
    let is_head = bytes.starts_with(b"HEAD ");
    let answered = timeout(patience, async {
        tokio::select! {
            () = sending => false,
            ended = receive(&mut reading, &mut received, is_head) => ended,
        }
    });
    match answered.await {
        Err(_) => Exchange::Hung(received),
        Ok(_) if received.is_empty() => Exchange::Closed,
        Ok(_) => match parse(&received, is_head) {
            Some(Parsed { answer, .. }) => Exchange::Answered(answer),
            None => Exchange::Garbled(received),
        },
    }
}

/// Reads until there is a whole answer, or the connection has ended.
async fn receive(stream: &mut (impl AsyncRead + Unpin), received: &mut Vec<u8>, is_head: bool) -> bool {
    let mut piece = vec![0; 64 << 10];
    loop {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => received.extend_from_slice(&piece[..count]),
        }
        if parse(received, is_head).is_some_and(|parsed| parsed.whole) {
            return true;
        }
    }
}

struct Parsed {
    answer: Answer,
    /// Nothing of it is still to come.
    whole: bool,
}

/// The answer at the beginning of these bytes, as far as it has come.
fn parse(bytes: &[u8], is_head: bool) -> Option<Parsed> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let rest = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    if status == 100 {
        return parse(rest, is_head);
    }
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut answer = Answer { status, headers, body: vec![] };
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    // A stream of events has no end to wait for.
    let endless = answer.header("content-type") == Some("text/event-stream");
    let whole = if is_head || endless {
        true
    } else if answer.header("transfer-encoding") == Some("chunked") {
        unchunk(rest, &mut answer.body)
    } else {
        answer.body = rest[..rest.len().min(length.unwrap_or(usize::MAX))].to_vec();
        length == Some(answer.body.len())
    };
    Some(Parsed { answer, whole })
}

/// Joins chunks; false if the last one has not come.
fn unchunk(mut rest: &[u8], body: &mut Vec<u8>) -> bool {
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return false };
        let size =
            std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let (Some(size), data) = (size, &rest[end + 2..]) else { return false };
        if size == 0 {
            return true;
        }
        if data.len() < size + 2 {
            return false;
        }
        body.extend_from_slice(&data[..size]);
        rest = &data[size + 2..];
    }
}
