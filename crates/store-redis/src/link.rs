//! The one connection of whoever works through commands step by step: the writer, or a reader.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_store::error::Result;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use crate::batch::{self, Batch};
use crate::connect::Endpoint;
use crate::error::{is_broken, must_reconnect};
use crate::script;
use crate::turn::RENEWAL;

/// So often something is sent over connections that end.
const TRIES: usize = 3;
/// Whoever is silent for longer will be so again.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// The words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// Makes the words of a command.
macro_rules! words {
    ($($word:expr),+ $(,)?) => { Vec::from([$($crate::link::word($word)),+]) };
}
pub(crate) use words;

pub(crate) fn word(word: impl AsRef<[u8]>) -> Vec<u8> {
    word.as_ref().to_vec()
}

pub(crate) struct Link {
    endpoint: Arc<Endpoint>,
    connection: RefCell<Option<redis::Connection>>,
    /// What is sent every now and then between other commands, and when that was last.
    renewal: RefCell<Option<(Vec<u8>, Instant)>>,
}

impl Link {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, connection: RefCell::default(), renewal: RefCell::default() }
    }

    /// Sees to it that there is a connection; answers whether it is a new one.
    pub(crate) fn open(&self) -> Result<bool> {
        let mut connection = self.connection.borrow_mut();
        if connection.is_some() {
            return Ok(false);
        }
        let mut fresh = self.endpoint.connect_blocking()?;
        load_all(&mut fresh)?;
        *connection = Some(fresh);
        Ok(true)
    }

    /// Sends commands together, and answers what Redis answers to each.
    pub(crate) fn send(&self, commands: &[Words]) -> Result<Vec<Value>> {
        self.send_packed(&pack(commands), commands.len(), &mut || {})
    }

    /// Sends one command.
    pub(crate) fn ask(&self, command: Words) -> Result<Value> {
        Ok(self.send(&[command])?.pop().unwrap_or(Value::Nil))
    }

    /// The same for one that is put together.
    pub(crate) fn ask_batch(&self, command: &Batch) -> Result<Value> {
        self.ask_batch_and(command, &mut || {})
    }

    /// The same; something else is done while Redis is at it, once or more.
    pub(crate) fn ask_batch_and(&self, command: &Batch, meanwhile: &mut dyn FnMut()) -> Result<Value> {
        Ok(self.send_packed(&command.command(), 1, meanwhile)?.pop().unwrap_or(Value::Nil))
    }

    /// From now on sends this between other commands, every quarter of a turn or as soon after as there are others.
    pub(crate) fn keep_turn(&self, renewal: &Batch) {
        self.renewal.replace(Some((renewal.command(), Instant::now())));
    }

    /// Does so no longer.
    pub(crate) fn keep_turn_no_longer(&self) {
        self.renewal.take();
    }

    /// Should it fail, the turn runs out, and the commit finds out whether that mattered.
    fn renew_turn(&self) {
        let mut renewal = self.renewal.borrow_mut();
        if let Some((command, last)) = renewal.as_mut()
            && last.elapsed() >= RENEWAL
        {
            let _ = self.exchange(command, 1, &mut || {});
            *last = Instant::now();
        }
    }

    /// A connection may have ended while nobody used it, or at any moment since. Then another one may serve: all that is
    /// sent here can be sent again, because it only reads, or knows what it has done.
    fn send_packed(&self, packed: &[u8], commands: usize, meanwhile: &mut dyn FnMut()) -> Result<Vec<Value>> {
        self.renew_turn();
        let begun = Instant::now();
        for _ in 1..TRIES {
            match self.exchange(packed, commands, meanwhile) {
                Err(fault) if is_broken(&fault) && begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                answers => return answers,
            }
        }
        self.exchange(packed, commands, meanwhile)
    }

    fn exchange(&self, packed: &[u8], commands: usize, meanwhile: &mut dyn FnMut()) -> Result<Vec<Value>> {
        self.open()?;
        let mut connection = self.connection.borrow_mut();
        let Some(open) = connection.as_mut() else { return Ok(vec![]) };
        let answers = match exchange(open, packed, commands, meanwhile) {
            // Somebody has made Redis forget its scripts.
            Err(error) if is_noscript(&error) => {
                load_all(open).and_then(|()| exchange(open, packed, commands, meanwhile))
            }
            answers => answers,
        };
        if answers.as_ref().is_err_and(must_reconnect) {
            *connection = None;
        }
        Ok(answers?)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.connection.borrow().is_some()
    }

    /// Sends commands if there is a connection, whatever becomes of them.
    pub(crate) fn say_farewell(&self, commands: &[Words]) {
        if let Some(open) = self.connection.borrow_mut().as_mut() {
            let _ = exchange(open, &pack(commands), commands.len(), &mut || {});
        }
    }

    /// Uses the connection no more.
    pub(crate) fn cut(&self) {
        self.connection.replace(None);
    }
}

fn load_all(connection: &mut redis::Connection) -> redis::RedisResult<()> {
    let loads: Vec<Words> = script::ALL.iter().map(|script| script.load()).collect();
    exchange(connection, &pack(&loads), loads.len(), &mut || {}).map(drop)
}

fn is_noscript(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

fn pack(commands: &[Words]) -> Vec<u8> {
    let mut packed = Vec::new();
    commands.iter().for_each(|words| batch::pack(words, &mut packed));
    packed
}

/// Each command is answered, whether or not others are refused; but after silence nothing more is waited for.
fn exchange(
    connection: &mut redis::Connection,
    packed: &[u8],
    commands: usize,
    meanwhile: &mut dyn FnMut(),
) -> redis::RedisResult<Vec<Value>> {
    connection.send_packed_command(packed)?;
    meanwhile();
    let answers: Vec<Value> =
        (0..commands).map(|_| connection.recv_response()).collect::<redis::RedisResult<_>>()?;
    answers.into_iter().map(Value::extract_error).collect()
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("endpoint", &self.endpoint).finish()
    }
}
