//! Other languages emit with their usual drivers, in their own transactions.

use std::io::Write;
use std::process::{Command, Stdio};

use pointsman_testing::{find_nodejs_with_pg, find_python_with_psycopg};

use crate::test_store::{TestStore, find_event_of_receipt};

/// Runs a command with this program as its input, and returns its output.
fn run_program(mut command: Command, program: &str) -> String {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// Checks the events of a program. Each program emits `gone` and rolls back, then emits `record.published` and
/// `record.closed` of one object, gets an error after a savepoint, commits, and prints the first receipt.
async fn assert_events_of_program(store_node: &TestStore, receipt: &str) {
    let events = store_node.wait_for_events(2).await;
    let event_types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(event_types, ["record.published", "record.closed"]);
    assert_eq!(events[0].key.as_ref().unwrap().as_str(), "record:1");
    assert_eq!(events[0].value.as_str(), r#"{"title": "Hällo"}"#);
    assert_eq!(events[0].context["ip"], "::1");
    assert_eq!((events[0].tenant.as_str(), events[1].prev), ("shop", Some(events[0].id)));
    let found = find_event_of_receipt(&store_node.connect_client().await, receipt.parse().unwrap()).await;
    assert_eq!(found, Some(events[0].id));
}

#[tokio::test]
async fn psql_emits_in_its_own_transaction() {
    let store_node = TestStore::new().await;
    let mut psql = Command::new("psql");
    psql.args(["-XqAt", "-d", &store_node.url]);
    let receipt = run_program(
        psql,
        r#"
        \set ON_ERROR_ROLLBACK on
        BEGIN;
        SELECT pointsman.emit('gone') \g /dev/null
        ROLLBACK;
        BEGIN;
        SELECT pointsman.emit('record.published', 'record:1', '{"title": "Hällo"}', '{"ip": "::1"}', 'shop');
        SELECT pointsman.emit('not a type');
        SELECT pointsman.emit('record.closed', 'record:1', tenant => 'shop', delay => '1 hour') \g /dev/null
        COMMIT;
        "#,
    );
    assert_events_of_program(&store_node, &receipt).await;
}

#[tokio::test]
async fn python_emits_in_its_own_transaction() {
    let store_node = TestStore::new().await;
    let mut python = find_python_with_psycopg().unwrap();
    python.args(["-", &store_node.url]);
    let receipt = run_program(
        python,
        r#"
import sys
import psycopg
from psycopg.types.json import Jsonb

with psycopg.connect(sys.argv[1]) as db:
    db.execute("SELECT pointsman.emit('gone')")
    db.rollback()

with psycopg.connect(sys.argv[1]) as db:
    receipt, = db.execute(
        "SELECT pointsman.emit('record.published', %s, %s, %s, tenant => %s)",
        ("record:1", Jsonb({"title": "H\u00e4llo"}), Jsonb({"ip": "::1"}), "shop"),
    ).fetchone()
    try:
        with db.transaction():
            db.execute("SELECT pointsman.emit(%s)", ("not a type",))
        sys.exit("an invalid event was accepted")
    except psycopg.errors.InvalidParameterValue as error:
        assert "type:" in str(error)
    db.execute("SELECT pointsman.emit('record.closed', %s, tenant => 'shop', priority => %s)", ("record:1", 200))

print(receipt)
"#,
    );
    assert_events_of_program(&store_node, &receipt).await;
}

#[tokio::test]
async fn nodejs_emits_in_its_own_transaction() {
    let store_node = TestStore::new().await;
    let mut node = find_nodejs_with_pg().unwrap();
    node.args(["-", &store_node.url]);
    let receipt = run_program(
        node,
        r#"
const { Client } = require('pg')

async function main() {
  const client = new Client({ connectionString: process.argv[2] })
  await client.connect()
  await client.query('BEGIN')
  await client.query("SELECT pointsman.emit('gone')")
  await client.query('ROLLBACK')

  await client.query('BEGIN')
  const { rows } = await client.query(
    "SELECT pointsman.emit('record.published', $1, $2, $3, $4) AS receipt",
    ['record:1', JSON.stringify({ title: 'Hällo' }), { ip: '::1' }, 'shop'],
  )
  await client.query('SAVEPOINT before')
  const code = await client.query('SELECT pointsman.emit($1)', ['not a type']).then(() => 'accepted', (e) => e.code)
  if (code !== '22023') throw new Error(code)
  await client.query('ROLLBACK TO before')
  await client.query(
    "SELECT pointsman.emit('record.closed', $1, tenant => 'shop', delay => $2)", ['record:1', '10 minutes'],
  )
  await client.query('COMMIT')
  await client.end()
  console.log(rows[0].receipt)
}

main().catch((error) => { console.error(error); process.exit(1) })
"#,
    );
    assert_events_of_program(&store_node, &receipt).await;
}
