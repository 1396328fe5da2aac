//! Python and Node: each reaches a database with its driver.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use pointsman_testing::{node, python, shared};

/// What a program says, given the URL of a database.
fn says(mut program: Command, option: &str, text: &str) -> String {
    let url = shared().unwrap().create_database().unwrap();
    let ended = program.args([option, text]).arg(url).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

#[test]
fn python_asks_a_database() {
    let text = "\
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection:
    print(connection.execute('SELECT 40 + 2').fetchone()[0])
";
    assert_eq!(says(python().unwrap(), "-c", text), "42");
}

#[test]
fn node_asks_a_database() {
    let text = "\
const { Client } = require('pg');
const client = new Client(process.argv[1]);
client.connect()
  .then(() => client.query('SELECT 40 + 2 AS n'))
  .then(answer => { console.log(answer.rows[0].n); return client.end(); });
";
    assert_eq!(says(node().unwrap(), "-e", text), "42");
}
