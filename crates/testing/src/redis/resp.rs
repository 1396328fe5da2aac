//! A connection to a Redis server that implements as much of RESP as the tests need. It uses no driver, so that the
//! observations of tests do not depend on the driver under test.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

/// The time limit of one command. It only bounds a test that fails anyway.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// A reply of a Redis server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisReply {
    Nil,
    Number(i64),
    /// A string, or a status such as `OK`.
    Bytes(Vec<u8>),
    List(Vec<RedisReply>),
    /// Only within a list, such as the reply of `EXEC`: a single command that fails is an `Err`.
    Error(String),
}

impl RedisReply {
    /// Returns a string or a status as text.
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

    /// Returns the elements of a list; empty if this is not a list.
    pub fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            Self::Nil | Self::Number(_) | Self::Bytes(_) | Self::Error(_) => &[],
        }
    }

    /// Returns the strings of a list as text.
    pub fn texts(&self) -> Vec<String> {
        self.list().iter().filter_map(Self::text).collect()
    }
}

/// A connection that stays open, for several commands on one connection, such as `MULTI`.
#[derive(Debug)]
pub struct RedisConnection {
    stream: BufReader<TcpStream>,
}

impl RedisConnection {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, COMMAND_TIMEOUT)
            .with_context(|| format!("cannot connect to Redis at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(COMMAND_TIMEOUT))?;
        stream.set_write_timeout(Some(COMMAND_TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a command and waits for its reply.
    pub fn run_command<W: AsRef<[u8]>>(&mut self, arguments: &[W]) -> anyhow::Result<RedisReply> {
        let reply = self.write_command(arguments).and_then(|()| self.read_reply());
        match reply.with_context(|| format!("no reply to `{}`", format_command(arguments)))? {
            RedisReply::Error(error) => bail!("`{}` failed: {error}", format_command(arguments)),
            reply
            @ (RedisReply::Nil | RedisReply::Number(_) | RedisReply::Bytes(_) | RedisReply::List(_)) => {
                Ok(reply)
            }
        }
    }

    fn write_command<W: AsRef<[u8]>>(&mut self, arguments: &[W]) -> anyhow::Result<()> {
        let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
        for word in arguments.iter().map(AsRef::as_ref) {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        Ok(self.stream.get_mut().write_all(&request)?)
    }

    fn read_reply(&mut self) -> anyhow::Result<RedisReply> {
        read_reply(&mut self.stream)
    }
}

fn read_reply(stream: &mut impl BufRead) -> anyhow::Result<RedisReply> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line.strip_suffix("\r\n").context("the connection was closed")?;
    let (type_marker, rest) = line.split_at_checked(1).context("an empty line is not a reply")?;
    Ok(match type_marker {
        "+" => RedisReply::Bytes(rest.as_bytes().to_vec()),
        "-" => RedisReply::Error(rest.to_owned()),
        ":" => RedisReply::Number(rest.parse()?),
        "$" => match parse_length(rest)? {
            Some(length) => RedisReply::Bytes(read_bytes(stream, length)?),
            None => RedisReply::Nil,
        },
        "*" => match parse_length(rest)? {
            Some(length) => {
                RedisReply::List((0..length).map(|_| read_reply(stream)).collect::<Result<_, _>>()?)
            }
            None => RedisReply::Nil,
        },
        _ => bail!("`{line}` is not a reply of Redis"),
    })
}

/// Parses the length of a string or list; None for nil, which has the length -1.
fn parse_length(text: &str) -> anyhow::Result<Option<usize>> {
    Ok(if text == "-1" { None } else { Some(text.parse()?) })
}

/// Reads `length` bytes and the line break after them.
fn read_bytes(stream: &mut impl BufRead, length: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Formats the first 200 characters of a command, for errors.
fn format_command<W: AsRef<[u8]>>(arguments: &[W]) -> String {
    let arguments = arguments.iter().map(|word| String::from_utf8_lossy(word.as_ref()));
    arguments.collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_every_kind_are_parsed() {
        let reply_bytes = b"*6\r\n+OK\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n-ERR no\r\n*-1\r\n$0\r\n\r\n";
        let reply = read_reply(&mut &reply_bytes[..]).unwrap();
        let expected = [
            RedisReply::Bytes(b"OK".to_vec()),
            RedisReply::Number(-7),
            RedisReply::Bytes(b"a\r\nb".to_vec()),
            RedisReply::Nil,
            RedisReply::List(vec![RedisReply::Error("ERR no".into()), RedisReply::Nil]),
            RedisReply::Bytes(vec![]),
        ];
        assert_eq!(reply.list(), expected);
        assert_eq!(reply.texts(), ["OK", "a\r\nb", ""]);
        assert!(read_reply(&mut &reply_bytes[..10]).is_err() && read_reply(&mut &b"?\r\n"[..]).is_err());
    }
}
