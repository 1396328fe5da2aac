//! A wire on which something happens to one command of one kind: it is held up, its answer is held up, or its answer is lost.
//!
//! Commands are known by the hash of their script, which stands at their beginning; each is written in one go.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::{PATIENCE, PAUSE};

/// What becomes of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It waits, and then goes on.
    Held,
    /// It is done; its answer waits.
    AnswerHeld,
    /// It is done; its answer is lost, and the connection ends. Others wait.
    AnswerLost,
}

/// What the test says, and is told.
struct Trap {
    script: String,
    fate: Fate,
    /// It has happened.
    sprung: Sender<()>,
    /// It may go on.
    release: Receiver<()>,
}

type Armed = Arc<Mutex<Option<Trap>>>;

/// A wire to a server.
pub(crate) struct Wire {
    address: SocketAddr,
    armed: Armed,
    /// New connections wait while this is held.
    door: Arc<Mutex<()>>,
}

/// A trap that was set.
pub(crate) struct Set {
    sprung: Receiver<()>,
    release: Sender<()>,
}

impl Set {
    /// Waits until such a command has come.
    pub(crate) fn sprung(&self) {
        self.sprung.recv_timeout(PATIENCE).expect("such a command comes");
    }

    /// Whether such a command comes within a moment.
    pub(crate) fn springs_soon(&self) -> bool {
        self.sprung.recv_timeout(10 * PAUSE).is_ok()
    }

    /// Lets everything go on.
    pub(crate) fn release(self) {
        let _ = self.release.send(());
    }
}

impl Wire {
    pub(crate) fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (armed, door) = (Armed::default(), Arc::<Mutex<()>>::default());
        let (traps, wait) = (armed.clone(), door.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                drop(wait.lock().unwrap());
                let Ok(server) = TcpStream::connect(target) else { continue };
                let (traps, wait) = (traps.clone(), wait.clone());
                thread::spawn(move || Link::new(client, server).carry(&traps, &wait));
            }
        });
        Self { address, armed, door }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next command that calls this script meets this fate.
    pub(crate) fn set(&self, script: &str, fate: Fate) -> Set {
        let ((sprung, was_sprung), (let_go, release)) = (channel(), channel());
        let trap = Trap { script: script.into(), fate, sprung, release };
        *self.armed.lock().unwrap() = Some(trap);
        Set { sprung: was_sprung, release: let_go }
    }
}

/// A client's connection, and the one to the server that belongs to it.
struct Link {
    client: TcpStream,
    server: TcpStream,
    /// Answers wait while this is held.
    answers: Mutex<()>,
    /// How often the server has said something.
    heard: AtomicU64,
}

impl Link {
    fn new(client: TcpStream, server: TcpStream) -> Self {
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        Self { client, server, answers: Mutex::default(), heard: AtomicU64::default() }
    }

    /// Carries what the client says, and in a thread of its own what it is answered.
    fn carry(&self, armed: &Armed, door: &Mutex<()>) {
        thread::scope(|scope| {
            scope.spawn(|| self.answer());
            let mut chunk = vec![0; 1 << 16];
            while let Ok(read @ 1..) = (&self.client).read(&mut chunk) {
                let said = &chunk[..read];
                match take(armed, said) {
                    None => self.say(said),
                    Some(trap) => self.spring(&trap, said, door),
                }
            }
            self.end();
        });
    }

    fn answer(&self) {
        let mut chunk = vec![0; 1 << 16];
        while let Ok(read @ 1..) = (&self.server).read(&mut chunk) {
            self.heard.fetch_add(1, Ordering::SeqCst);
            let _open = self.answers.lock().unwrap();
            let _ = (&self.client).write_all(&chunk[..read]);
        }
        self.end();
    }

    fn say(&self, said: &[u8]) {
        let _ = (&self.server).write_all(said);
    }

    /// Says it, and waits until the server has answered.
    fn say_and_hear(&self, said: &[u8]) {
        let before = self.heard.load(Ordering::SeqCst);
        self.say(said);
        while self.heard.load(Ordering::SeqCst) == before {
            thread::sleep(PAUSE);
        }
    }

    fn spring(&self, trap: &Trap, said: &[u8], door: &Mutex<()>) {
        let wait = || {
            let _ = trap.sprung.send(());
            let _ = trap.release.recv();
        };
        match trap.fate {
            Fate::Held => {
                wait();
                self.say(said);
            }
            Fate::AnswerHeld => {
                let _closed = self.answers.lock().unwrap();
                self.say_and_hear(said);
                wait();
            }
            Fate::AnswerLost => {
                let _shut = door.lock().unwrap();
                let _closed = self.answers.lock().unwrap();
                self.say_and_hear(said);
                self.end();
                wait();
            }
        }
    }

    fn end(&self) {
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }
}

/// The trap, if this is what it waits for.
fn take(armed: &Armed, said: &[u8]) -> Option<Trap> {
    let mut armed = armed.lock().unwrap();
    let wanted = armed.as_ref()?.script.as_bytes();
    let begins = &said[..said.len().min(256)];
    begins.windows(wanted.len()).any(|part| part == wanted).then(|| armed.take()).flatten()
}
