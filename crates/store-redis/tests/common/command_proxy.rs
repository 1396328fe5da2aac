//! A proxy that injects a fault into one call of a script: it delays the command or its reply, or loses the reply.
//!
//! Commands are known by the hash of their script, which stands at their beginning; each is written in one go.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::{POLL_INTERVAL, TEST_TIMEOUT};

/// Fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandFault {
    /// The command is delayed.
    DelayCommand,
    /// The command runs; its reply is delayed.
    DelayReply,
    /// The command runs; its reply is lost and the connection closed. New connections wait.
    LoseReply,
}

/// A fault that waits for its command.
struct ArmedFault {
    script: String,
    fault: CommandFault,
    /// It has happened.
    triggered: Sender<()>,
    /// It may go on.
    release: Receiver<()>,
}

type ArmedFaultSlot = Arc<Mutex<Option<ArmedFault>>>;

/// A proxy in front of a server.
pub(crate) struct CommandProxy {
    address: SocketAddr,
    armed: ArmedFaultSlot,
    /// New connections wait while this is held.
    connect_gate: Arc<Mutex<()>>,
}

/// Handle of an armed fault.
pub(crate) struct FaultHandle {
    triggered: Receiver<()>,
    release: Sender<()>,
}

impl FaultHandle {
    /// Waits until the fault is triggered.
    pub(crate) fn wait_until_triggered(&self) {
        self.triggered.recv_timeout(TEST_TIMEOUT).expect("such a command comes");
    }

    /// Returns whether the fault is triggered shortly.
    pub(crate) fn triggers_soon(&self) -> bool {
        self.triggered.recv_timeout(10 * POLL_INTERVAL).is_ok()
    }

    /// Ends the fault.
    pub(crate) fn release(self) {
        let _ = self.release.send(());
    }
}

impl CommandProxy {
    pub(crate) fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (armed, connect_gate) = (ArmedFaultSlot::default(), Arc::<Mutex<()>>::default());
        let (armed_faults, wait) = (armed.clone(), connect_gate.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                drop(wait.lock().unwrap());
                let Ok(server) = TcpStream::connect(target) else { continue };
                let (armed_faults, wait) = (armed_faults.clone(), wait.clone());
                thread::spawn(move || {
                    ProxiedConnection::new(client, server).forward_commands(&armed_faults, &wait)
                });
            }
        });
        Self { address, armed, connect_gate }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Arms a fault for the next call of a script.
    pub(crate) fn arm(&self, script: &str, fault: CommandFault) -> FaultHandle {
        let ((triggered, was_sprung), (let_go, release)) = (channel(), channel());
        let trap = ArmedFault { script: script.into(), fault, triggered, release };
        *self.armed.lock().unwrap() = Some(trap);
        FaultHandle { triggered: was_sprung, release: let_go }
    }
}

/// A client connection and its server connection.
struct ProxiedConnection {
    client: TcpStream,
    server: TcpStream,
    /// Answers wait while this is held.
    reply_gate: Mutex<()>,
    /// How often the server has said something.
    reply_count: AtomicU64,
}

impl ProxiedConnection {
    fn new(client: TcpStream, server: TcpStream) -> Self {
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        Self { client, server, reply_gate: Mutex::default(), reply_count: AtomicU64::default() }
    }

    /// Carries what the client says, and in a thread of its own what it is answered.
    fn forward_commands(&self, armed: &ArmedFaultSlot, connect_gate: &Mutex<()>) {
        thread::scope(|scope| {
            scope.spawn(|| self.forward_replies());
            let mut chunk = vec![0; 1 << 16];
            while let Ok(read @ 1..) = (&self.client).read(&mut chunk) {
                let said = &chunk[..read];
                match take_matching_fault(armed, said) {
                    None => self.send_to_server(said),
                    Some(trap) => self.trigger(&trap, said, connect_gate),
                }
            }
            self.shut_down();
        });
    }

    fn forward_replies(&self) {
        let mut chunk = vec![0; 1 << 16];
        while let Ok(read @ 1..) = (&self.server).read(&mut chunk) {
            self.reply_count.fetch_add(1, Ordering::SeqCst);
            let _open = self.reply_gate.lock().unwrap();
            let _ = (&self.client).write_all(&chunk[..read]);
        }
        self.shut_down();
    }

    fn send_to_server(&self, said: &[u8]) {
        let _ = (&self.server).write_all(said);
    }

    /// Says it, and waits until the server has answered.
    fn send_and_await_reply(&self, said: &[u8]) {
        let before = self.reply_count.load(Ordering::SeqCst);
        self.send_to_server(said);
        while self.reply_count.load(Ordering::SeqCst) == before {
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn trigger(&self, trap: &ArmedFault, said: &[u8], connect_gate: &Mutex<()>) {
        let wait = || {
            let _ = trap.triggered.send(());
            let _ = trap.release.recv();
        };
        match trap.fault {
            CommandFault::DelayCommand => {
                wait();
                self.send_to_server(said);
            }
            CommandFault::DelayReply => {
                let _closed = self.reply_gate.lock().unwrap();
                self.send_and_await_reply(said);
                wait();
            }
            CommandFault::LoseReply => {
                let _shut = connect_gate.lock().unwrap();
                let _closed = self.reply_gate.lock().unwrap();
                self.send_and_await_reply(said);
                self.shut_down();
                wait();
            }
        }
    }

    fn shut_down(&self) {
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }
}

/// Takes the armed fault if the bytes call its script.
fn take_matching_fault(armed: &ArmedFaultSlot, said: &[u8]) -> Option<ArmedFault> {
    let mut armed = armed.lock().unwrap();
    let wanted = armed.as_ref()?.script.as_bytes();
    let begins = &said[..said.len().min(256)];
    begins.windows(wanted.len()).any(|part| part == wanted).then(|| armed.take()).flatten()
}
