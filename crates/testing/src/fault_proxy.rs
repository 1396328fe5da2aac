//! A TCP proxy between a client and a server that can close connections, freeze them, refuse new ones and drop
//! replies.
//!
//! One thread accepts connections, and each connection has two threads that forward bytes, one for each direction.
//! Bytes that are in a socket's buffer when a fault is switched on may still arrive.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context;

use crate::free_port;

/// A proxy in front of a server, on loopback. Dropping it closes all of its connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    core: Arc<ProxyCore>,
    /// None while connections are refused.
    acceptor: Mutex<Option<Acceptor>>,
}

/// The thread that accepts connections.
#[derive(Debug)]
struct Acceptor {
    is_closing: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The part of a proxy that its threads share.
#[derive(Debug)]
struct ProxyCore {
    target: SocketAddr,
    state: Mutex<ProxyState>,
    state_changed: Condvar,
}

#[derive(Debug, Default)]
struct ProxyState {
    is_frozen: bool,
    drops_replies: bool,
    connections: Vec<Arc<ProxyConnection>>,
}

/// A client's connection and the connection to the server that belongs to it.
#[derive(Debug)]
struct ProxyConnection {
    client: TcpStream,
    server: TcpStream,
    is_closed: AtomicBool,
}

/// The treatment of bytes that were read.
enum ForwardAction {
    Forward,
    DropReply,
    Stop,
}

impl FaultProxy {
    /// Starts a proxy in front of the server at `target`.
    pub fn start(target: SocketAddr) -> anyhow::Result<Self> {
        let listener = free_port::listen_on_free_port()?;
        let address = listener.local_addr()?;
        let core = Arc::new(ProxyCore { target, state: Mutex::default(), state_changed: Condvar::new() });
        let acceptor = Mutex::new(Some(Acceptor::start(listener, &core)));
        Ok(Self { address, core, acceptor })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections at once. New ones are accepted.
    pub fn close_connections(&self) {
        for connection in &self.core.lock_state().connections {
            connection.close();
        }
        self.core.state_changed.notify_all();
    }

    /// Sets whether new connections are refused. Open ones stay.
    pub fn set_refuse_connections(&self, refuse: bool) -> anyhow::Result<()> {
        let mut acceptor = self.acceptor.lock().unwrap_or_else(PoisonError::into_inner);
        match (acceptor.take(), refuse) {
            (Some(open), true) => open.close(self.address),
            (None, false) => {
                let listener =
                    TcpListener::bind(self.address).context("cannot bind the proxy's port again")?;
                *acceptor = Some(Acceptor::start(listener, &self.core));
            }
            (unchanged, true | false) => *acceptor = unchanged,
        }
        Ok(())
    }

    /// Sets whether bytes are held back, in both directions. They are forwarded after unfreezing; none is lost.
    pub fn set_frozen(&self, freeze: bool) {
        self.core.lock_state().is_frozen = freeze;
        self.core.state_changed.notify_all();
    }

    /// Sets whether the server's replies are dropped. The client's connection is closed at the first byte of a reply,
    /// but the server still reads and executes all that was sent to it.
    pub fn set_drop_replies(&self, drop: bool) {
        self.core.lock_state().drops_replies = drop;
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        let _ = self.set_refuse_connections(true);
        self.close_connections();
    }
}

impl Acceptor {
    fn start(listener: TcpListener, core: &Arc<ProxyCore>) -> Self {
        let is_closing = Arc::new(AtomicBool::new(false));
        let (is_closing_in_thread, core) = (is_closing.clone(), core.clone());
        let thread = thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if is_closing_in_thread.load(Ordering::SeqCst) {
                    return;
                }
                core.clone().connect_client_to_server(client);
            }
        });
        Self { is_closing, thread }
    }

    /// Stops accepting: when this returns, the port is closed. A connection to the own port wakes the thread, which
    /// waits for the next client.
    fn close(self, address: SocketAddr) {
        self.is_closing.store(true, Ordering::SeqCst);
        let _wake_up = TcpStream::connect(address);
        let _ = self.thread.join();
    }
}

impl ProxyCore {
    fn lock_state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects a client to the server and forwards bytes between them, if the server listens.
    fn connect_client_to_server(self: Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.target) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let connection = Arc::new(ProxyConnection { client, server, is_closed: AtomicBool::new(false) });
        self.lock_state().connections.push(connection.clone());
        thread::spawn(move || {
            thread::scope(|scope| {
                scope
                    .spawn(|| self.forward_bytes(&connection, &connection.client, &connection.server, false));
                self.forward_bytes(&connection, &connection.server, &connection.client, true);
            });
            self.lock_state().connections.retain(|other| !Arc::ptr_eq(other, &connection));
        });
    }

    /// Forwards bytes in one direction until the connection ends. `are_replies`: the bytes come from the server.
    fn forward_bytes(
        &self,
        connection: &ProxyConnection,
        mut from: &TcpStream,
        mut to: &TcpStream,
        are_replies: bool,
    ) {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut chunk).unwrap_or(0);
            match self.decide_forwarding(connection, are_replies) {
                ForwardAction::Forward if read == 0 => {
                    let _ = to.shutdown(Shutdown::Write);
                    return;
                }
                ForwardAction::Forward => {
                    if to.write_all(&chunk[..read]).is_err() {
                        connection.close();
                    }
                }
                ForwardAction::DropReply => return connection.discard_replies(),
                ForwardAction::Stop => return,
            }
        }
    }

    /// Decides what to do with bytes that were read, after waiting while the proxy is frozen.
    fn decide_forwarding(&self, connection: &ProxyConnection, are_replies: bool) -> ForwardAction {
        let must_wait = |state: &mut ProxyState| state.is_frozen && !connection.is_closed();
        let state = self
            .state_changed
            .wait_while(self.lock_state(), must_wait)
            .unwrap_or_else(PoisonError::into_inner);
        match (connection.is_closed(), are_replies && state.drops_replies) {
            (true, _) => ForwardAction::Stop,
            (false, true) => ForwardAction::DropReply,
            (false, false) => ForwardAction::Forward,
        }
    }
}

impl ProxyConnection {
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Closes both sides. The caller must notify `state_changed` afterwards, for threads that wait while frozen.
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }

    /// Closes the client's connection, and reads the server's replies in its place until the server is done.
    fn discard_replies(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut &self.server, &mut std::io::sink());
    }
}
