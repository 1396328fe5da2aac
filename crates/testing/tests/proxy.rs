//! The proxy: each fault that it injects, observed by a client of an echo server.

// All of this file is test code; clippy recognizes only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use pointsman_testing::{FaultProxy, PostgresServer, PostgresSettings};

/// Starts a server that echoes what it receives, and sends a copy to the returned channel.
fn start_echo_server() -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (received_sender, receiver) = channel();
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let received_sender = received_sender.clone();
            thread::spawn(move || {
                let mut chunk = [0; 1024];
                while let Ok(read @ 1..) = client.read(&mut chunk) {
                    let _ = (received_sender.send(chunk[..read].to_vec()), client.write_all(&chunk[..read]));
                }
            });
        }
    });
    (address, receiver)
}

fn connect(proxy: &FaultProxy) -> TcpStream {
    let client = TcpStream::connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client
}

fn send_text(mut client: &TcpStream, text: &str) {
    client.write_all(text.as_bytes()).unwrap();
}

fn assert_receives_text(mut client: &TcpStream, text: &str) {
    let mut reply = vec![0; text.len()];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply, text.as_bytes());
}

/// Whether the connection is closed, and not just without data.
fn is_closed(mut client: &TcpStream) -> bool {
    match client.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn proxy_forwards_bytes_and_closes_all_connections_at_once() {
    let proxy = FaultProxy::start(start_echo_server().0).unwrap();
    let clients = [connect(&proxy), connect(&proxy)];
    for client in &clients {
        send_text(client, "hello");
        assert_receives_text(client, "hello");
    }
    proxy.close_connections();
    assert!(clients.iter().all(is_closed));
    let client = connect(&proxy);
    send_text(&client, "again");
    assert_receives_text(&client, "again");
}

#[test]
fn proxy_refuses_new_connections_and_keeps_open_ones() {
    let proxy = FaultProxy::start(start_echo_server().0).unwrap();
    let old = connect(&proxy);
    send_text(&old, "one");
    assert_receives_text(&old, "one");
    for _ in 0..3 {
        proxy.set_refuse_connections(true).unwrap();
        let refused = TcpStream::connect(proxy.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        send_text(&old, "two");
        assert_receives_text(&old, "two");
        proxy.set_refuse_connections(false).unwrap();
        let new = connect(&proxy);
        send_text(&new, "three");
        assert_receives_text(&new, "three");
    }
}

#[test]
fn a_frozen_proxy_forwards_the_bytes_after_unfreezing() {
    let proxy = FaultProxy::start(start_echo_server().0).unwrap();
    let client = connect(&proxy);
    send_text(&client, "one");
    assert_receives_text(&client, "one");
    proxy.set_frozen(true);
    send_text(&client, "two");
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let silent = (&client).read(&mut [0]).unwrap_err();
    assert!(matches!(silent.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    proxy.set_frozen(false);
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_receives_text(&client, "two");
}

#[test]
fn connections_of_a_frozen_proxy_can_be_closed() {
    let proxy = FaultProxy::start(start_echo_server().0).unwrap();
    let client = connect(&proxy);
    send_text(&client, "one");
    assert_receives_text(&client, "one");
    proxy.set_frozen(true);
    send_text(&client, "two");
    proxy.close_connections();
    assert!(is_closed(&client));
}

#[test]
fn a_reply_is_dropped_after_the_server_received_the_request() {
    let (server, received) = start_echo_server();
    let proxy = FaultProxy::start(server).unwrap();
    let client = connect(&proxy);
    proxy.set_drop_replies(true);
    send_text(&client, "one");
    assert!(is_closed(&client));
    assert_eq!(received.recv().unwrap(), b"one");
}

#[test]
fn a_commit_whose_reply_is_lost_is_still_committed() {
    let postgres = PostgresServer::start(PostgresSettings::default()).unwrap();
    let proxy = FaultProxy::start(postgres.address()).unwrap();
    let url = postgres.url_through_proxy(&proxy, "postgres").unwrap();
    postgres.query("postgres", "CREATE TABLE t (n int)").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        proxy.set_drop_replies(true);
        client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap_err();
    });
    let rows = postgres.query("postgres", "SELECT n FROM t").unwrap();
    assert_eq!(rows, [[Some("1".to_owned())]]);
}
