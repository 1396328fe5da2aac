//! Producers in other languages.

use std::process::{Command, Stdio};

use crate::common::invariants::wait_until_outbox_is_drained;
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::redis_location::RedisLocation;
use crate::common::test_node::{TestNode, event_values};

/// Runs a program with an input; returns its output.
fn run_program(mut command: Command, input: &str) -> String {
    use std::io::Write;
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    stdout.into_owned()
}

/// Asserts that the three events that a program has pushed are journaled.
async fn assert_three_events_are_journaled(location: &RedisLocation) {
    let node = TestNode::open(location).await;
    let events = node.wait_for_events(3).await;
    assert_eq!(event_values(&events), [r#"{"title": "Hällo \"x\""}"#, "2", "3"]);
    let event_types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(event_types, ["work.changed", "post.changed", "post.changed"]);
    assert_ids_and_prev_links(&events);
    wait_until_outbox_is_drained(location).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_cli_can_push_events() {
    let location = RedisLocation::on_shared_server();
    let (prefix, address) = (&location.prefix, location.admin.address());
    let mut cli = Command::new("redis-cli");
    cli.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
    let output = run_program(
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
    assert!(output.ends_with("OK\n3\n1\n") || output.contains("QUEUED"), "{output}");
    assert_three_events_are_journaled(&location).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_can_push_events() {
    let location = RedisLocation::on_shared_server();
    let address = location.admin.address();
    let mut python = Command::new("python3");
    python.args(["-", &address.ip().to_string(), &address.port().to_string(), &location.prefix]);
    run_program(
        python,
        r#"
import json, socket, sys

host, port, prefix = sys.argv[1], int(sys.argv[2]), sys.argv[3]
connection = socket.create_connection((host, port))

def send(*args):
    parts = [b'*%d\r\n' % len(args)]
    for arg in args:
        arg = arg.encode()
        parts.append(b'$%d\r\n%s\r\n' % (len(arg), arg))
    connection.sendall(b''.join(parts))

events = [
    {'type': 'work.changed', 'value': {'title': 'Hällo "x"'}},
    {'type': 'post.changed', 'value': 2},
    {'type': 'post.changed', 'value': 3},
]
send('MULTI')
send('SET', prefix + 'work:1:data', '{}')
send('LPUSH', prefix + 'work:1:events', *(json.dumps(event, ensure_ascii=False) for event in events))
send('LPUSH', prefix + 'objects.with.events', 'work:1')
send('EXEC')
reply = b''
while not reply.endswith(b'*3\r\n+OK\r\n:3\r\n:1\r\n'):
    reply += connection.recv(1000) or sys.exit('%r' % reply)
"#,
    );
    assert_three_events_are_journaled(&location).await;
}
