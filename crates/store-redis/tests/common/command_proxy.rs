//! A proxy that injects a fault into one call of a script: it delays the command or its reply, or loses the reply.
//!
//! A command is recognised by the hash of its script near its start, so the store must write each command at once.

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
    script_hash: String,
    fault: CommandFault,
    /// Signals that the fault was triggered.
    trigger_sender: Sender<()>,
    /// Receives that the test ends the fault.
    release_receiver: Receiver<()>,
}

type ArmedFaultSlot = Arc<Mutex<Option<ArmedFault>>>;

/// A proxy in front of a server.
pub(crate) struct CommandProxy {
    address: SocketAddr,
    armed_fault_slot: ArmedFaultSlot,
    /// New connections wait while this is locked.
    connect_gate: Arc<Mutex<()>>,
}

/// The test's handle of an armed fault.
pub(crate) struct FaultHandle {
    trigger_receiver: Receiver<()>,
    release_sender: Sender<()>,
}

impl FaultHandle {
    /// Waits until the fault is triggered.
    pub(crate) fn wait_until_triggered(&self) {
        self.trigger_receiver.recv_timeout(TEST_TIMEOUT).expect("the script is called");
    }

    /// Returns whether the fault is triggered within a short time.
    pub(crate) fn triggers_soon(&self) -> bool {
        self.trigger_receiver.recv_timeout(10 * POLL_INTERVAL).is_ok()
    }

    /// Ends the fault.
    pub(crate) fn release(self) {
        let _ = self.release_sender.send(());
    }
}

impl CommandProxy {
    pub(crate) fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (armed, connect_gate) = (ArmedFaultSlot::default(), Arc::<Mutex<()>>::default());
        let (armed_faults, gate) = (armed.clone(), connect_gate.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                drop(gate.lock().unwrap());
                let Ok(server) = TcpStream::connect(target) else { continue };
                let (armed_faults, gate) = (armed_faults.clone(), gate.clone());
                thread::spawn(move || {
                    ProxiedConnection::new(client, server).forward_commands(&armed_faults, &gate)
                });
            }
        });
        Self { address, armed_fault_slot: armed, connect_gate }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Arms a fault for the next call of a script.
    pub(crate) fn arm(&self, script_hash: &str, fault: CommandFault) -> FaultHandle {
        let ((trigger_sender, trigger_receiver), (release_sender, release_receiver)) = (channel(), channel());
        let armed_fault =
            ArmedFault { script_hash: script_hash.into(), fault, trigger_sender, release_receiver };
        *self.armed_fault_slot.lock().unwrap() = Some(armed_fault);
        FaultHandle { trigger_receiver, release_sender }
    }
}

/// A client connection and its server connection.
struct ProxiedConnection {
    client: TcpStream,
    server: TcpStream,
    /// Replies wait while this is locked.
    reply_gate: Mutex<()>,
    /// Number of chunks received from the server.
    reply_count: AtomicU64,
}

impl ProxiedConnection {
    fn new(client: TcpStream, server: TcpStream) -> Self {
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        Self { client, server, reply_gate: Mutex::default(), reply_count: AtomicU64::default() }
    }

    /// Forwards commands of the client, and replies in a second thread.
    fn forward_commands(&self, armed: &ArmedFaultSlot, connect_gate: &Mutex<()>) {
        thread::scope(|scope| {
            scope.spawn(|| self.forward_replies());
            let mut chunk = vec![0; 1 << 16];
            while let Ok(read @ 1..) = (&self.client).read(&mut chunk) {
                let bytes = &chunk[..read];
                match take_matching_fault(armed, bytes) {
                    None => self.send_to_server(bytes),
                    Some(fault) => self.apply_fault(&fault, bytes, connect_gate),
                }
            }
            self.shut_down();
        });
    }

    fn forward_replies(&self) {
        let mut chunk = vec![0; 1 << 16];
        while let Ok(read @ 1..) = (&self.server).read(&mut chunk) {
            self.reply_count.fetch_add(1, Ordering::SeqCst);
            let _replies_allowed = self.reply_gate.lock().unwrap();
            let _ = (&self.client).write_all(&chunk[..read]);
        }
        self.shut_down();
    }

    fn send_to_server(&self, bytes: &[u8]) {
        let _ = (&self.server).write_all(bytes);
    }

    /// Sends a command to the server, and waits until it has replied.
    fn send_and_await_reply(&self, bytes: &[u8]) {
        let before = self.reply_count.load(Ordering::SeqCst);
        self.send_to_server(bytes);
        while self.reply_count.load(Ordering::SeqCst) == before {
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn apply_fault(&self, armed_fault: &ArmedFault, bytes: &[u8], connect_gate: &Mutex<()>) {
        let wait_for_release = || {
            let _ = armed_fault.trigger_sender.send(());
            let _ = armed_fault.release_receiver.recv();
        };
        match armed_fault.fault {
            CommandFault::DelayCommand => {
                wait_for_release();
                self.send_to_server(bytes);
            }
            CommandFault::DelayReply => {
                let _no_replies = self.reply_gate.lock().unwrap();
                self.send_and_await_reply(bytes);
                wait_for_release();
            }
            CommandFault::LoseReply => {
                let _no_connections = connect_gate.lock().unwrap();
                let _no_replies = self.reply_gate.lock().unwrap();
                self.send_and_await_reply(bytes);
                self.shut_down();
                wait_for_release();
            }
        }
    }

    fn shut_down(&self) {
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }
}

/// Takes the armed fault if the bytes call its script.
fn take_matching_fault(armed: &ArmedFaultSlot, bytes: &[u8]) -> Option<ArmedFault> {
    let mut armed = armed.lock().unwrap();
    let script_hash = armed.as_ref()?.script_hash.as_bytes();
    let start = &bytes[..bytes.len().min(256)];
    start.windows(script_hash.len()).any(|part| part == script_hash).then(|| armed.take()).flatten()
}
