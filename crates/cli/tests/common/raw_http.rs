//! A minimal HTTP client that sends raw bytes, so that tests can send invalid requests.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A parsed response.
#[derive(Clone, Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum ExchangeOutcome {
    Response(RawResponse),
    /// The connection was closed without a response.
    Closed,
    /// The received bytes are not an HTTP response.
    Invalid(Vec<u8>),
    /// No complete response arrived in time.
    TimedOut(Vec<u8>),
}

impl ExchangeOutcome {
    pub(crate) fn into_response(self) -> Option<RawResponse> {
        match self {
            Self::Response(response) => Some(response),
            Self::Closed | Self::Invalid(_) | Self::TimedOut(_) => None,
        }
    }
}

impl RawResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the response is a complete problem document, and returns its status.
    pub(crate) fn assert_problem(&self) -> u16 {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{body}");
        for member in ["type", "title", "detail"] {
            assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "no {member}: {body}");
        }
        self.status
    }
}

/// Sends bytes on a new connection and reads one response. Both happen concurrently: a server may respond before it has
/// read everything.
pub(crate) async fn send_raw(address: &str, bytes: &[u8], limit: Duration) -> ExchangeOutcome {
    send_and_receive(address, bytes, false, limit).await
}

/// Sends as [`send_raw`] does, and closes the sending side after the last byte: for incomplete requests.
pub(crate) async fn send_raw_and_close_sending(
    address: &str,
    bytes: &[u8],
    limit: Duration,
) -> ExchangeOutcome {
    send_and_receive(address, bytes, true, limit).await
}

async fn send_and_receive(address: &str, bytes: &[u8], close: bool, limit: Duration) -> ExchangeOutcome {
    let Ok(stream) = TcpStream::connect(address).await else { return ExchangeOutcome::Closed };
    let (mut reading, mut writing) = stream.into_split();
    let mut received = vec![];
    let sending = async {
        // A server may respond and close before everything was written.
        let _ = writing.write_all(bytes).await;
        if close {
            let _ = writing.shutdown().await;
        }
        std::future::pending::<()>().await;
    };
    let is_head = bytes.starts_with(b"HEAD ");
    let finished = timeout(limit, async {
        tokio::select! {
            () = sending => false,
            ended = read_response(&mut reading, &mut received, is_head) => ended,
        }
    });
    match finished.await {
        Err(_) => ExchangeOutcome::TimedOut(received),
        Ok(_) if received.is_empty() => ExchangeOutcome::Closed,
        Ok(_) => match parse_response(&received, is_head) {
            Some(ParsedResponse { response, .. }) => ExchangeOutcome::Response(response),
            None => ExchangeOutcome::Invalid(received),
        },
    }
}

/// Reads until the response is complete, or until the connection is closed. Returns whether the response is complete.
async fn read_response(stream: &mut (impl AsyncRead + Unpin), received: &mut Vec<u8>, is_head: bool) -> bool {
    let mut piece = vec![0; 64 << 10];
    loop {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => received.extend_from_slice(&piece[..count]),
        }
        if parse_response(received, is_head).is_some_and(|parsed| parsed.is_complete) {
            return true;
        }
    }
}

struct ParsedResponse {
    response: RawResponse,
    is_complete: bool,
}

/// Parses the response at the start of these bytes, as far as it was received.
fn parse_response(bytes: &[u8], is_head: bool) -> Option<ParsedResponse> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let rest = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    if status == 100 {
        return parse_response(rest, is_head);
    }
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut response = RawResponse { status, headers, body: vec![] };
    let length = response.header("content-length").and_then(|length| length.parse().ok());
    // An event stream does not end.
    let is_stream = response.header("content-type") == Some("text/event-stream");
    let is_complete = if is_head || is_stream {
        true
    } else if response.header("transfer-encoding") == Some("chunked") {
        join_chunks(rest, &mut response.body)
    } else {
        response.body = rest[..rest.len().min(length.unwrap_or(usize::MAX))].to_vec();
        length == Some(response.body.len())
    };
    Some(ParsedResponse { response, is_complete })
}

/// Joins the chunks of a chunked body. Returns false if the last chunk has not arrived.
fn join_chunks(mut rest: &[u8], body: &mut Vec<u8>) -> bool {
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
