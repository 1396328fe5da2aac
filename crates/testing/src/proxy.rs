//! A wire between a client and a server that can be cut, frozen, or made to lose answers.
//!
//! A thread takes connections, and each of them has two that carry bytes, one a direction. What is in a socket's
//! buffer when something is asked for may still arrive.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context;

use crate::port;

/// Stands before a server on loopback. It ends, and with it all of its connections, when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    wire: Arc<Wire>,
    /// None while connections are refused.
    door: Mutex<Option<Door>>,
}

/// Who takes connections.
#[derive(Debug)]
struct Door {
    closing: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Wire {
    target: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    frozen: bool,
    drops_replies: bool,
    links: Vec<Arc<Link>>,
}

/// A client's connection and the one to the server that belongs to it.
#[derive(Debug)]
struct Link {
    client: TcpStream,
    server: TcpStream,
    cut: AtomicBool,
}

/// What becomes of bytes that were read.
enum Fate {
    Pass,
    Swallow,
    Cut,
}

impl Proxy {
    pub fn start(target: SocketAddr) -> anyhow::Result<Self> {
        let listener = port::listen()?;
        let address = listener.local_addr()?;
        let wire = Arc::new(Wire { target, state: Mutex::default(), changed: Condvar::new() });
        let door = Mutex::new(Some(Door::open(listener, &wire)));
        Ok(Self { address, wire, door })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drops all connections at once. New ones are taken.
    pub fn cut(&self) {
        for link in &self.wire.state().links {
            link.cut();
        }
        self.wire.changed.notify_all();
    }

    /// Whether new connections are refused. Those that are there stay.
    pub fn refuse(&self, refuse: bool) -> anyhow::Result<()> {
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        match (door.take(), refuse) {
            (Some(open), true) => open.close(self.address),
            (None, false) => {
                let listener = TcpListener::bind(self.address).context("the proxy's port is taken")?;
                *door = Some(Door::open(listener, &self.wire));
            }
            (as_it_is, true | false) => *door = as_it_is,
        }
        Ok(())
    }

    /// Whether bytes stop, in both directions. They go on when this ends; none is lost.
    pub fn freeze(&self, freeze: bool) {
        self.wire.state().frozen = freeze;
        self.wire.changed.notify_all();
    }

    /// Whether what the server says is lost. The client's connection is cut at the first byte, but the server
    /// still reads all that was sent to it, and does it.
    pub fn drop_replies(&self, drop: bool) {
        self.wire.state().drops_replies = drop;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.refuse(true);
        self.cut();
    }
}

impl Door {
    fn open(listener: TcpListener, wire: &Arc<Wire>) -> Self {
        let closing = Arc::new(AtomicBool::new(false));
        let (seen, wire) = (closing.clone(), wire.clone());
        let thread = thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                wire.clone().connect(client);
            }
        });
        Self { closing, thread }
    }

    /// Closes it: when this returns, nobody listens. A connection of our own wakes the thread.
    fn close(self, address: SocketAddr) {
        self.closing.store(true, Ordering::SeqCst);
        let _knock = TcpStream::connect(address);
        let _ = self.thread.join();
    }
}

impl Wire {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects a client with the server, if that listens.
    fn connect(self: Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.target) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let link = Arc::new(Link { client, server, cut: AtomicBool::new(false) });
        self.state().links.push(link.clone());
        thread::spawn(move || {
            thread::scope(|scope| {
                scope.spawn(|| self.carry(&link, &link.client, &link.server, false));
                self.carry(&link, &link.server, &link.client, true);
            });
            self.state().links.retain(|other| !Arc::ptr_eq(other, &link));
        });
    }

    /// Carries bytes one way until there are no more.
    fn carry(&self, link: &Link, mut from: &TcpStream, mut to: &TcpStream, replies: bool) {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut chunk).unwrap_or(0);
            match self.fate(link, replies) {
                Fate::Pass if read == 0 => {
                    let _ = to.shutdown(Shutdown::Write);
                    return;
                }
                Fate::Pass => {
                    if to.write_all(&chunk[..read]).is_err() {
                        link.cut();
                    }
                }
                Fate::Swallow => return link.lose_replies(),
                Fate::Cut => return,
            }
        }
    }

    /// Waits while the wire is frozen.
    fn fate(&self, link: &Link, replies: bool) -> Fate {
        let frozen = |state: &mut State| state.frozen && !link.is_cut();
        let state = self.changed.wait_while(self.state(), frozen).unwrap_or_else(PoisonError::into_inner);
        match (link.is_cut(), replies && state.drops_replies) {
            (true, _) => Fate::Cut,
            (false, true) => Fate::Swallow,
            (false, false) => Fate::Pass,
        }
    }
}

impl Link {
    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// Whoever waits for a frozen wire must be told afterwards.
    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }

    /// Cuts the client off, and listens to the server in its place until that is done.
    fn lose_replies(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut &self.server, &mut std::io::sink());
    }
}
