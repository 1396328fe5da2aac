//! Python and Node.js each query a database with their driver.

// All of this file is test code; clippy recognizes only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use pointsman_testing::{find_nodejs_with_pg, find_python_with_psycopg, shared_postgres};

/// Runs a script with the URL of a new database as its argument, and returns its output.
fn run_script(mut program: Command, option: &str, script: &str) -> String {
    let url = shared_postgres().unwrap().create_database().unwrap();
    let output = program.args([option, script]).arg(url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn python_queries_a_database() {
    let text = "\
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection:
    print(connection.execute('SELECT 40 + 2').fetchone()[0])
";
    assert_eq!(run_script(find_python_with_psycopg().unwrap(), "-c", text), "42");
}

#[test]
fn nodejs_queries_a_database() {
    let text = "\
const { Client } = require('pg');
const client = new Client(process.argv[1]);
client.connect()
  .then(() => client.query('SELECT 40 + 2 AS n'))
  .then(result => { console.log(result.rows[0].n); return client.end(); });
";
    assert_eq!(run_script(find_nodejs_with_pg().unwrap(), "-e", text), "42");
}
