//! The one connection of whoever works through commands step by step: the writer, or a reader.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_store::error::Result;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use crate::command_buffer::{self, CommandBuffer};
use crate::connect::Endpoint;
use crate::error::{is_connection_fault, must_reconnect};
use crate::script;
use crate::write_lock::LOCK_RENEWAL_INTERVAL;

/// So often something is sent over connections that end.
const MAX_SEND_ATTEMPTS: usize = 3;
/// Whoever is silent for longer will be so again.
const RETRY_WINDOW: Duration = Duration::from_secs(1);
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The words of a command.
pub(crate) type CommandArgs = Vec<Vec<u8>>;

/// Makes the words of a command.
macro_rules! args {
    ($($word:expr),+ $(,)?) => { Vec::from([$($crate::connection::to_arg($word)),+]) };
}
pub(crate) use args;

pub(crate) fn to_arg(word: impl AsRef<[u8]>) -> Vec<u8> {
    word.as_ref().to_vec()
}

pub(crate) struct BlockingConnection {
    endpoint: Arc<Endpoint>,
    connection: RefCell<Option<redis::Connection>>,
    /// What is sent every now and then between other commands, and when that was last.
    lock_renewal: RefCell<Option<(Vec<u8>, Instant)>>,
}

impl BlockingConnection {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, connection: RefCell::default(), lock_renewal: RefCell::default() }
    }

    /// Sees to it that there is a connection; answers whether it is a new one.
    pub(crate) fn open(&self) -> Result<bool> {
        let mut connection = self.connection.borrow_mut();
        if connection.is_some() {
            return Ok(false);
        }
        let mut fresh = self.endpoint.connect_blocking()?;
        load_scripts(&mut fresh)?;
        *connection = Some(fresh);
        Ok(true)
    }

    /// Sends commands together, and answers what Redis answers to each.
    pub(crate) fn execute_all(&self, commands: &[CommandArgs]) -> Result<Vec<Value>> {
        self.execute_encoded(&encode_commands(commands), commands.len(), &mut || {})
    }

    /// Sends one command.
    pub(crate) fn execute(&self, command: CommandArgs) -> Result<Value> {
        Ok(self.execute_all(&[command])?.pop().unwrap_or(Value::Nil))
    }

    /// The same for one that is put together.
    pub(crate) fn execute_buffer(&self, command: &CommandBuffer) -> Result<Value> {
        self.execute_buffer_while(command, &mut || {})
    }

    /// The same; something else is done while Redis is at it, once or more.
    pub(crate) fn execute_buffer_while(
        &self,
        command: &CommandBuffer,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Value> {
        Ok(self.execute_encoded(&command.encode(), 1, meanwhile)?.pop().unwrap_or(Value::Nil))
    }

    /// From now on sends this between other commands, every quarter of a turn or as soon after as there are others.
    pub(crate) fn start_lock_renewal(&self, lock_renewal: &CommandBuffer) {
        self.lock_renewal.replace(Some((lock_renewal.encode(), Instant::now())));
    }

    /// Does so no longer.
    pub(crate) fn stop_lock_renewal(&self) {
        self.lock_renewal.take();
    }

    /// Should it fail, the turn runs out, and the commit finds out whether that mattered.
    fn renew_lock_if_due(&self) {
        let mut lock_renewal = self.lock_renewal.borrow_mut();
        if let Some((command, last)) = lock_renewal.as_mut()
            && last.elapsed() >= LOCK_RENEWAL_INTERVAL
        {
            let _ = self.exchange_once(command, 1, &mut || {});
            *last = Instant::now();
        }
    }

    /// A connection may have ended while nobody used it, or at any moment since. Then another one may serve: all that is
    /// sent here can be sent again, because it only reads, or knows what it has done.
    fn execute_encoded(
        &self,
        encoded: &[u8],
        commands: usize,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Value>> {
        self.renew_lock_if_due();
        let begun = Instant::now();
        for _ in 1..MAX_SEND_ATTEMPTS {
            match self.exchange_once(encoded, commands, meanwhile) {
                Err(fault) if is_connection_fault(&fault) && begun.elapsed() < RETRY_WINDOW => {
                    std::thread::sleep(RETRY_DELAY)
                }
                answers => return answers,
            }
        }
        self.exchange_once(encoded, commands, meanwhile)
    }

    fn exchange_once(
        &self,
        encoded: &[u8],
        commands: usize,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Value>> {
        self.open()?;
        let mut connection = self.connection.borrow_mut();
        let Some(open) = connection.as_mut() else { return Ok(vec![]) };
        let answers = match send_and_receive(open, encoded, commands, meanwhile) {
            // Somebody has made Redis forget its scripts.
            Err(error) if is_noscript(&error) => {
                load_scripts(open).and_then(|()| send_and_receive(open, encoded, commands, meanwhile))
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
    pub(crate) fn execute_if_connected(&self, commands: &[CommandArgs]) {
        if let Some(open) = self.connection.borrow_mut().as_mut() {
            let _ = send_and_receive(open, &encode_commands(commands), commands.len(), &mut || {});
        }
    }

    /// Uses the connection no more.
    pub(crate) fn disconnect(&self) {
        self.connection.replace(None);
    }
}

fn load_scripts(connection: &mut redis::Connection) -> redis::RedisResult<()> {
    let loads: Vec<CommandArgs> = script::ALL_SCRIPTS.iter().map(|script| script.load_command()).collect();
    send_and_receive(connection, &encode_commands(&loads), loads.len(), &mut || {}).map(drop)
}

fn is_noscript(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

fn encode_commands(commands: &[CommandArgs]) -> Vec<u8> {
    let mut encoded = Vec::new();
    commands.iter().for_each(|args| command_buffer::encode_command_into(args, &mut encoded));
    encoded
}

/// Each command is answered, whether or not others are refused; but after silence nothing more is waited for.
fn send_and_receive(
    connection: &mut redis::Connection,
    encoded: &[u8],
    commands: usize,
    meanwhile: &mut dyn FnMut(),
) -> redis::RedisResult<Vec<Value>> {
    connection.send_packed_command(encoded)?;
    meanwhile();
    let answers: Vec<Value> =
        (0..commands).map(|_| connection.recv_response()).collect::<redis::RedisResult<_>>()?;
    answers.into_iter().map(Value::extract_error).collect()
}

impl std::fmt::Debug for BlockingConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockingConnection").field("endpoint", &self.endpoint).finish()
    }
}
