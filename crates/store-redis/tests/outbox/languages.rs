//! Producers in other languages.

use std::process::{Command, Stdio};

use crate::common::chains::assert_chained;
use crate::common::invariants::rest;
use crate::common::node::{Node, values};
use crate::common::place::Place;

/// Runs a program with this as its input, and answers what it says.
fn run(mut command: Command, input: &str) -> String {
    use std::io::Write;
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complaint}");
    said.into_owned()
}

/// What each of them has left.
async fn is_journaled(place: &Place) {
    let node = Node::open(place).await;
    let events = node.events(3).await;
    assert_eq!(values(&events), [r#"{"title": "Hällo \"x\""}"#, "2", "3"]);
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["work.changed", "post.changed", "post.changed"]);
    assert_chained(&events);
    rest(place).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_redis_cli() {
    let place = Place::shared();
    let (prefix, address) = (&place.prefix, place.admin.address());
    let mut cli = Command::new("redis-cli");
    cli.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
    let said = run(
        cli,
        &format!(
            r#"MULTI
SET {prefix}work:1:data "{{ }}"
LPUSH {prefix}work:1:events '{{"type": "work.changed", "value": {{"title": "Hällo \"x\""}}}}' '{{"type": "post.changed", "value": 2}}' '{{"type": "post.changed", "value": 3}}'
LPUSH {prefix}objects.with.events work:1
EXEC
"#
        ),
    );
    assert!(said.ends_with("OK\n3\n1\n") || said.contains("QUEUED"), "{said}");
    is_journaled(&place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_python() {
    let place = Place::shared();
    let address = place.admin.address();
    let mut python = Command::new("python3");
    python.args(["-", &address.ip().to_string(), &address.port().to_string(), &place.prefix]);
    run(
        python,
        r#"
import json, socket, sys

host, port, prefix = sys.argv[1], int(sys.argv[2]), sys.argv[3]
wire = socket.create_connection((host, port))

def say(*words):
    parts = [b'*%d\r\n' % len(words)]
    for word in words:
        word = word.encode()
        parts.append(b'$%d\r\n%s\r\n' % (len(word), word))
    wire.sendall(b''.join(parts))

events = [
    {'type': 'work.changed', 'value': {'title': 'Hällo "x"'}},
    {'type': 'post.changed', 'value': 2},
    {'type': 'post.changed', 'value': 3},
]
say('MULTI')
say('SET', prefix + 'work:1:data', '{}')
say('LPUSH', prefix + 'work:1:events', *(json.dumps(event, ensure_ascii=False) for event in events))
say('LPUSH', prefix + 'objects.with.events', 'work:1')
say('EXEC')
said = b''
while not said.endswith(b'*3\r\n+OK\r\n:3\r\n:1\r\n'):
    said += wire.recv(1000) or sys.exit('%r' % said)
"#,
    );
    is_journaled(&place).await;
}
