//! Noticing that the configuration has changed.
//!
//! Every second the files are read and compared. That costs some microseconds, works on every file system, and
//! sees what editors and container platforms do (they replace a file rather than write to it). The system's own
//! notices are not used: they come by folder, the store often lies in the same one, and then each of its commits
//! would wake the watch, thousands of times a second under load. A change is acted on once two readings agree,
//! lest a file be taken that is half written.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::fault::{Faults, Warning};
use super::lookup::Sources;
use super::read;
use super::snapshot::{Print, Snapshot};
use super::{Config, yaml::Node};

/// How often the files are compared.
const POLL: Duration = Duration::from_secs(1);
/// How long the files must stay as they are before they are read.
const SETTLE: Duration = Duration::from_millis(100);
/// Files that never come to rest are read all the same after so many looks.
const LOOKS: usize = 20;

/// A watch over the sources of a configuration. It ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<Never>>,
    thread: Option<JoinHandle<()>>,
}

/// Nothing is ever sent: the watch ends when its sender is dropped.
#[derive(Debug)]
enum Never {}

impl Watch {
    /// Ends the watch, and waits until a reload that is under way has been told.
    pub fn stop(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the callback has been shown by its own thread.
            let _ = thread.join();
        }
    }
}

/// Calls `on_change` on a thread of its own whenever the files, or the secrets they refer to, differ from what
/// `running` was read from: with the new configuration, whose warnings name the settings that cannot change in
/// a running process, or with its faults, in which case everything is to stay as it is.
pub fn watch(
    sources: Sources,
    running: &Config,
    on_change: impl FnMut(Result<Config, Faults>) + Send + 'static,
) -> std::io::Result<Watch> {
    let (stop, stopped) = mpsc::channel();
    let post = Post { sources, running: running.clone(), print: running.print.clone(), stopped };
    let thread =
        std::thread::Builder::new().name("config-watch".into()).spawn(move || post.keep(on_change))?;
    Ok(Watch { stop: Some(stop), thread: Some(thread) })
}

struct Post {
    sources: Sources,
    /// What the process was started with: the settings that cannot change are compared to it.
    running: Config,
    print: Print,
    stopped: Receiver<Never>,
}

impl Post {
    fn keep(mut self, mut on_change: impl FnMut(Result<Config, Faults>)) {
        while self.goes_on_for(POLL) {
            let snapshot = Snapshot::take(&self.sources);
            if self.print.renewed(&snapshot) == self.print {
                continue;
            }
            let Some(snapshot) = self.settled(snapshot) else { return };
            let built = read::build(&self.sources, &snapshot);
            self.print = built.print;
            on_change(built.result.map(|config| self.warned(config)));
        }
    }

    /// Waits; `false` if the watch has ended.
    fn goes_on_for(&self, time: Duration) -> bool {
        matches!(self.stopped.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// The files once they have come to rest; nothing if the watch has ended meanwhile.
    fn settled(&self, mut snapshot: Snapshot) -> Option<Snapshot> {
        let mut print = self.print.renewed(&snapshot);
        for _ in 0..LOOKS {
            if !self.goes_on_for(SETTLE) {
                return None;
            }
            snapshot = Snapshot::take(&self.sources);
            let now = self.print.renewed(&snapshot);
            if now == print {
                break;
            }
            print = now;
        }
        Some(snapshot)
    }

    /// Adds a warning for each setting that the running process cannot take up.
    fn warned(&self, mut config: Config) -> Config {
        for setting in config.fixed_since(&self.running) {
            let place =
                setting.split('.').fold(&config.tree, |node: &Node, key| node.get(key).unwrap_or(node));
            let message =
                format!("`{setting}` cannot change while running; it takes effect at the next start");
            config.warnings.push(Warning::new(&place.place.clone(), message));
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Far longer than a change takes to be noticed, even on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    struct Watched {
        folder: tempfile::TempDir,
        news: Receiver<Result<Config, Faults>>,
        watch: Watch,
    }

    fn watched(text: &str) -> Watched {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap();
        std::fs::write(folder.path().join("pointsman.yml"), text).unwrap();
        let sources = Sources { working: folder.path().to_owned(), ..Sources::default() };
        let (tell, news) = mpsc::channel();
        let running = sources.load().unwrap();
        let watch = watch(sources, &running, move |result| drop(tell.send(result))).unwrap();
        Watched { folder, news, watch }
    }

    impl Watched {
        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Replaces the file as editors do: all at once, by another.
        fn replace(&self, text: &str) {
            std::fs::write(self.path("new"), text).unwrap();
            std::fs::rename(self.path("new"), self.path("pointsman.yml")).unwrap();
        }

        fn next(&self) -> Result<Config, Faults> {
            self.news.recv_timeout(LONG).expect("a change is noticed")
        }
    }

    #[test]
    fn good_files_are_taken_up_and_bad_ones_are_told() {
        let watched = watched("workers: 1\n");
        watched.replace("handlers: {a: {run: {command: [sh]}}}\nworkers: 1\n");
        assert_eq!(watched.next().unwrap().handlers.len(), 1);
        std::fs::write(watched.path("pointsman.yml"), "handlers: {a: {}}\n").unwrap();
        assert_eq!(watched.next().unwrap_err().len(), 1);
        std::fs::remove_file(watched.path("pointsman.yml")).unwrap();
        assert_eq!(watched.next().unwrap().handlers.len(), 0);
        watched.watch.stop();
        assert!(watched.news.try_recv().is_err(), "each change is told once");
    }

    #[test]
    fn what_cannot_change_is_warned_about() {
        let watched = watched("workers: 1\n");
        watched.replace("workers: 2\nserver: {listen: '127.0.0.1:1'}\n");
        let warnings: Vec<String> =
            watched.next().unwrap().warnings.iter().map(ToString::to_string).collect();
        let folder = watched.folder.path().display();
        assert_eq!(
            warnings,
            [
                format!(
                    "{folder}/pointsman.yml:2:18: `server.listen` cannot change while running; it takes effect at the next start"
                ),
                format!(
                    "{folder}/pointsman.yml:1:10: `workers` cannot change while running; it takes effect at the next start"
                ),
            ]
        );
    }

    #[test]
    fn a_secret_that_is_replaced_is_a_change_too() {
        let text = "handlers: {a: {run: {http: 'https://x.example/', secret: 'file:key'}}}\nevent_handlers: {x: [a]}\n";
        let watched = watched(text);
        std::fs::write(watched.path("key"), "nonsense").unwrap();
        assert_eq!(watched.next().unwrap_err().len(), 1);
        std::fs::write(watched.path("key"), "whsec_FxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA").unwrap();
        assert!(watched.next().is_ok());
    }
}
