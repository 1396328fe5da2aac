//! A hostile request and its expected outcome.

/// The expected outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedOutcome {
    /// The request is invalid: a 4xx response with a problem document.
    Refused,
    /// The request may be valid: any response below 500; a 4xx with a problem document.
    AnyResponse,
    /// The request is not valid HTTP: a response below 500 or a closed connection.
    ResponseOrClosed,
}

/// The bytes of a request, and the outcome that the server must produce.
#[derive(Clone, Debug)]
pub(crate) struct HostileRequest {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected_outcome: ExpectedOutcome,
}

impl HostileRequest {
    /// The start of the request, for messages.
    pub(crate) fn describe(&self) -> String {
        let start: String = String::from_utf8_lossy(&self.bytes).chars().take(600).collect();
        format!("{} bytes: {start:?}", self.bytes.len())
    }
}

/// The parts of a request, from which its bytes are built.
pub(crate) struct RequestDraft {
    method: String,
    target: String,
    token: Option<String>,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl RequestDraft {
    pub(crate) fn new(method: &str, target: impl Into<String>, token: &str) -> Self {
        let (method, target, token) = (method.into(), target.into(), Some(token.into()));
        Self { method, target, token, headers: vec![], body: None }
    }

    /// Starts a request that emits events in Pointsman's own JSON form.
    pub(crate) fn new_emit(token: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", "/api/v1/events", token)
            .with_header("content-type", "application/json")
            .with_body(body)
    }

    pub(crate) fn without_token(mut self) -> Self {
        self.token = None;
        self
    }

    pub(crate) fn with_header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Formats the request line and the headers, without the empty line at their end.
    fn format_head(&self) -> Vec<u8> {
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

    pub(crate) fn build(self, expected: ExpectedOutcome) -> HostileRequest {
        let mut bytes = self.format_head();
        bytes.extend_from_slice(b"connection: close\r\n");
        if let Some(body) = &self.body {
            bytes.extend(format!("content-length: {}\r\n", body.len()).into_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend(self.body.unwrap_or_default());
        HostileRequest { bytes, expected_outcome: expected }
    }

    /// Builds the request with its body in chunks of this size.
    pub(crate) fn build_chunked(self, size: usize, expected: ExpectedOutcome) -> HostileRequest {
        let mut bytes = self.format_head();
        bytes.extend_from_slice(b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
        for piece in self.body.unwrap_or_default().chunks(size) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        HostileRequest { bytes, expected_outcome: expected }
    }

    pub(crate) fn build_expecting_refusal(self) -> HostileRequest {
        self.build(ExpectedOutcome::Refused)
    }

    pub(crate) fn build_expecting_response(self) -> HostileRequest {
        self.build(ExpectedOutcome::AnyResponse)
    }
}
