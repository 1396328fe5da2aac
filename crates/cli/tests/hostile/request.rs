//! One hostile request, and what may come of it.

/// What may come of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// It is wrong: an answer in the 400s that names the fault.
    Refused,
    /// It may happen to be right: an answer; if it is a refusal, one that names the fault.
    Answered,
    /// It is hardly HTTP: an answer that is not the server's fault, or a closed connection.
    Broken,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Expected,
}

impl Request {
    /// The beginning of what was sent, for people.
    pub(crate) fn shown(&self) -> String {
        let shown: String = String::from_utf8_lossy(&self.bytes).chars().take(600).collect();
        format!("{} bytes: {shown:?}", self.bytes.len())
    }
}

/// A request that is whole, in the making.
pub(crate) struct Draft {
    method: String,
    target: String,
    token: Option<String>,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl Draft {
    pub(crate) fn new(method: &str, target: impl Into<String>, token: &str) -> Self {
        let (method, target, token) = (method.into(), target.into(), Some(token.into()));
        Self { method, target, token, headers: vec![], body: None }
    }

    /// One that emits, in the house's own form.
    pub(crate) fn emit(token: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", "/api/v1/events", token).header("content-type", "application/json").body(body)
    }

    pub(crate) fn without_token(mut self) -> Self {
        self.token = None;
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The bytes of the head without the blank line at its end.
    fn head(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\nhost: x\r\n", self.method, self.target).into_bytes();
        if let Some(token) = &self.token {
            bytes.extend(format!("authorization: Bearer {token}\r\n").into_bytes());
        }
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    pub(crate) fn expecting(self, expected: Expected) -> Request {
        let mut bytes = self.head();
        bytes.extend_from_slice(b"connection: close\r\n");
        if let Some(body) = &self.body {
            bytes.extend(format!("content-length: {}\r\n", body.len()).into_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend(self.body.unwrap_or_default());
        Request { bytes, expected }
    }

    /// The same with its body in chunks of this size.
    pub(crate) fn chunked(self, size: usize, expected: Expected) -> Request {
        let mut bytes = self.head();
        bytes.extend_from_slice(b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
        for piece in self.body.unwrap_or_default().chunks(size) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        Request { bytes, expected }
    }

    pub(crate) fn refused(self) -> Request {
        self.expecting(Expected::Refused)
    }

    pub(crate) fn answered(self) -> Request {
        self.expecting(Expected::Answered)
    }
}
