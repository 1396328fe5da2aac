//! The proxy: each thing that it does to a wire, seen by a client of a server that echoes.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use pointsman_testing::{Postgres, Proxy, Settings};

/// A server that says back what it hears, and tells us too.
fn echo() -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heard, told) = channel();
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let heard = heard.clone();
            thread::spawn(move || {
                let mut chunk = [0; 1024];
                while let Ok(read @ 1..) = client.read(&mut chunk) {
                    let _ = (heard.send(chunk[..read].to_vec()), client.write_all(&chunk[..read]));
                }
            });
        }
    });
    (address, told)
}

fn connect(proxy: &Proxy) -> TcpStream {
    let client = TcpStream::connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client
}

fn say(mut client: &TcpStream, word: &str) {
    client.write_all(word.as_bytes()).unwrap();
}

fn hear(mut client: &TcpStream, word: &str) {
    let mut answer = vec![0; word.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, word.as_bytes());
}

/// Whether the connection is closed, rather than silent.
fn is_closed(mut client: &TcpStream) -> bool {
    match client.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn it_carries_what_is_said_and_cuts_all_at_once() {
    let proxy = Proxy::start(echo().0).unwrap();
    let clients = [connect(&proxy), connect(&proxy)];
    for client in &clients {
        say(client, "hello");
        hear(client, "hello");
    }
    proxy.cut();
    assert!(clients.iter().all(is_closed));
    let client = connect(&proxy);
    say(&client, "again");
    hear(&client, "again");
}

#[test]
fn it_refuses_new_connections_and_keeps_the_old() {
    let proxy = Proxy::start(echo().0).unwrap();
    let old = connect(&proxy);
    say(&old, "one");
    hear(&old, "one");
    for _ in 0..3 {
        proxy.refuse(true).unwrap();
        let refused = TcpStream::connect(proxy.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        say(&old, "two");
        hear(&old, "two");
        proxy.refuse(false).unwrap();
        let new = connect(&proxy);
        say(&new, "three");
        hear(&new, "three");
    }
}

#[test]
fn a_frozen_wire_keeps_everything_for_later() {
    let proxy = Proxy::start(echo().0).unwrap();
    let client = connect(&proxy);
    say(&client, "one");
    hear(&client, "one");
    proxy.freeze(true);
    say(&client, "two");
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let silent = (&client).read(&mut [0]).unwrap_err();
    assert!(matches!(silent.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    proxy.freeze(false);
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    hear(&client, "two");
}

#[test]
fn a_frozen_wire_can_be_cut() {
    let proxy = Proxy::start(echo().0).unwrap();
    let client = connect(&proxy);
    say(&client, "one");
    hear(&client, "one");
    proxy.freeze(true);
    say(&client, "two");
    proxy.cut();
    assert!(is_closed(&client));
}

#[test]
fn a_lost_reply_is_lost_after_the_server_heard_the_question() {
    let (server, heard) = echo();
    let proxy = Proxy::start(server).unwrap();
    let client = connect(&proxy);
    proxy.drop_replies(true);
    say(&client, "one");
    assert!(is_closed(&client));
    assert_eq!(heard.recv().unwrap(), b"one");
}

#[test]
fn a_commit_whose_answer_is_lost_is_a_commit() {
    let postgres = Postgres::start(Settings::default()).unwrap();
    let proxy = Proxy::start(postgres.address()).unwrap();
    let url = postgres.url_through(&proxy, "postgres").unwrap();
    postgres.query("postgres", "CREATE TABLE t (n int)").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        proxy.drop_replies(true);
        client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap_err();
    });
    let rows = postgres.query("postgres", "SELECT n FROM t").unwrap();
    assert_eq!(rows, [[Some("1".to_owned())]]);
}
