//! Commands on a terminal of their own, as a person has them. `script` makes it.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// A command whose standard streams are a terminal of so many columns.
pub(crate) struct Terminal {
    child: Child,
}

impl Terminal {
    /// `command` tells the program, its words, its folder and its environment.
    pub(crate) fn open(command: &Command, columns: u16) -> Self {
        Self::with(command, columns, "")
    }

    /// The same, with standard output or standard error somewhere else: `> file`.
    pub(crate) fn with(command: &Command, columns: u16, elsewhere: &str) -> Self {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        let line = format!("stty cols {columns} rows 24; exec {} {elsewhere}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script
            .current_dir(command.get_current_dir().unwrap())
            .env_clear()
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh");
        script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let started = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self { child: started.unwrap_or_else(|error| panic!("`script` is needed for this test: {error}")) }
    }

    /// Types something.
    pub(crate) fn press(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text, and tells all that was shown up to its end.
    pub(crate) fn await_text(&mut self, text: &str) -> String {
        let (mut shown, mut byte) = (vec![], [0]);
        let out = self.child.stdout.as_mut().unwrap();
        while !String::from_utf8_lossy(&shown).contains(text) {
            assert_eq!(
                out.read(&mut byte).unwrap(),
                1,
                "{text:?} never came: {}",
                String::from_utf8_lossy(&shown)
            );
            shown.push(byte[0]);
        }
        String::from_utf8(shown).unwrap()
    }

    /// Waits for the end of the command: the rest of what is shown, and its exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        let mut shown = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut shown).unwrap();
        let code = self.child.wait().unwrap().code();
        (shown.replace("\r\n", "\n"), code)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What is left of a text when colours are taken away.
pub(crate) fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest));
    rest.fold(first, |text, rest| text + rest)
}
