//! Runs commands on a pseudo-terminal, which `script` creates.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// A command whose standard streams are a terminal of this many columns.
pub(crate) struct TestTerminal {
    child: Child,
}

impl TestTerminal {
    /// Starts the program of `command` with its arguments, directory and environment.
    pub(crate) fn open(command: &Command, columns: u16) -> Self {
        Self::open_redirected(command, columns, "")
    }

    /// Starts as [`TestTerminal::open`] does, with a shell redirection such as `> file`.
    pub(crate) fn open_redirected(command: &Command, columns: u16, redirection: &str) -> Self {
        let arguments = [command.get_program()].into_iter().chain(command.get_args());
        let arguments: Vec<String> =
            arguments.map(|argument| shell_quote(&argument.to_string_lossy())).collect();
        let line = format!("stty cols {columns} rows 24; exec {} {redirection}", arguments.join(" "));
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

    /// Sends keys to the command, as if they were typed.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text, and returns the output up to it.
    pub(crate) fn wait_for_text(&mut self, text: &str) -> String {
        let (mut output, mut byte) = (vec![], [0]);
        let out = self.child.stdout.as_mut().unwrap();
        while !String::from_utf8_lossy(&output).contains(text) {
            assert_eq!(
                out.read(&mut byte).unwrap(),
                1,
                "{text:?} was not printed: {}",
                String::from_utf8_lossy(&output)
            );
            output.push(byte[0]);
        }
        String::from_utf8(output).unwrap()
    }

    /// Waits for the end of the command, and returns the rest of its output and the exit code.
    pub(crate) fn wait_for_exit(mut self) -> (String, Option<i32>) {
        let mut output = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut output).unwrap();
        let code = self.child.wait().unwrap().code();
        (output.replace("\r\n", "\n"), code)
    }
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shell_quote(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Removes colour codes from a text.
pub(crate) fn strip_colors(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest));
    rest.fold(first, |text, rest| text + rest)
}
