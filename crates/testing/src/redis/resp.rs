//! A connection to a Redis and the words on it, as far as tests need them: RESP, without a driver, so that what is
//! seen here does not depend on the one that is tested.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

/// How long a server may take over one command. It only bounds a test that fails anyway.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a Redis answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Nil,
    Number(i64),
    /// A string, or a status such as `OK`.
    Bytes(Vec<u8>),
    List(Vec<Reply>),
    /// Only within a list, as `EXEC` answers with: a command that fails by itself is an error.
    Error(String),
}

impl Reply {
    /// A string or a status as text.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Nil | Self::Number(_) | Self::List(_) | Self::Error(_) => None,
        }
    }

    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Nil | Self::Bytes(_) | Self::List(_) | Self::Error(_) => None,
        }
    }

    /// What is in a list, and nothing if it is none.
    pub fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            Self::Nil | Self::Number(_) | Self::Bytes(_) | Self::Error(_) => &[],
        }
    }

    /// The strings of a list as text.
    pub fn texts(&self) -> Vec<String> {
        self.list().iter().filter_map(Self::text).collect()
    }
}

/// A connection that stays: for what needs several commands on one, such as `MULTI`.
#[derive(Debug)]
pub struct RedisConnection {
    stream: BufReader<TcpStream>,
}

impl RedisConnection {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .with_context(|| format!("no Redis listens at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a command and waits for its answer.
    pub fn command<W: AsRef<[u8]>>(&mut self, words: &[W]) -> anyhow::Result<Reply> {
        let answered = self.say(words).and_then(|()| self.hear());
        match answered.with_context(|| format!("no answer to `{}`", shown(words)))? {
            Reply::Error(error) => bail!("`{}` failed: {error}", shown(words)),
            reply @ (Reply::Nil | Reply::Number(_) | Reply::Bytes(_) | Reply::List(_)) => Ok(reply),
        }
    }

    fn say<W: AsRef<[u8]>>(&mut self, words: &[W]) -> anyhow::Result<()> {
        let mut said = format!("*{}\r\n", words.len()).into_bytes();
        for word in words.iter().map(AsRef::as_ref) {
            said.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            said.extend_from_slice(word);
            said.extend_from_slice(b"\r\n");
        }
        Ok(self.stream.get_mut().write_all(&said)?)
    }

    fn hear(&mut self) -> anyhow::Result<Reply> {
        hear(&mut self.stream)
    }
}

fn hear(stream: &mut impl BufRead) -> anyhow::Result<Reply> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line.strip_suffix("\r\n").context("the connection was closed")?;
    let (kind, rest) = line.split_at_checked(1).context("an empty line is not an answer")?;
    Ok(match kind {
        "+" => Reply::Bytes(rest.as_bytes().to_vec()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Number(rest.parse()?),
        "$" => match length(rest)? {
            Some(length) => Reply::Bytes(bytes(stream, length)?),
            None => Reply::Nil,
        },
        "*" => match length(rest)? {
            Some(length) => Reply::List((0..length).map(|_| hear(stream)).collect::<Result<_, _>>()?),
            None => Reply::Nil,
        },
        _ => bail!("`{line}` is not an answer of a Redis"),
    })
}

/// None for what is not there, which has the length -1.
fn length(text: &str) -> anyhow::Result<Option<usize>> {
    Ok(if text == "-1" { None } else { Some(text.parse()?) })
}

fn bytes(stream: &mut impl BufRead, length: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// The beginning of a command, for errors.
fn shown<W: AsRef<[u8]>>(words: &[W]) -> String {
    let words = words.iter().map(|word| String::from_utf8_lossy(word.as_ref()));
    words.collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_every_kind_are_read() {
        let said = b"*6\r\n+OK\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n-ERR no\r\n*-1\r\n$0\r\n\r\n";
        let reply = hear(&mut &said[..]).unwrap();
        let expected = [
            Reply::Bytes(b"OK".to_vec()),
            Reply::Number(-7),
            Reply::Bytes(b"a\r\nb".to_vec()),
            Reply::Nil,
            Reply::List(vec![Reply::Error("ERR no".into()), Reply::Nil]),
            Reply::Bytes(vec![]),
        ];
        assert_eq!(reply.list(), expected);
        assert_eq!(reply.texts(), ["OK", "a\r\nb", ""]);
        assert!(hear(&mut &said[..10]).is_err() && hear(&mut &b"?\r\n"[..]).is_err());
    }
}
