//! Watches the configuration files and reloads them after a change.
//!
//! The files are read and compared every second. This costs some microseconds, works on every file system, and detects
//! the way editors and container platforms replace files. File system notifications are not used: they are per folder,
//! the store is often in the same folder, and each of its commits would wake the watcher, thousands of times a second
//! under load. A change is applied once two readings agree, so that a half-written file is not used.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::build;
use super::fault::{ConfigFaults, ConfigWarning};
use super::file_contents::{ConfigFileContents, ConfigFingerprint};
use super::inputs::ConfigInputs;
use super::{Config, yaml::YamlNode};

/// The interval at which the files are compared.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which changed files must stay the same before they are read.
const STABLE_INTERVAL: Duration = Duration::from_millis(100);
/// Files that keep changing are nevertheless read after this many comparisons.
const MAX_STABILITY_CHECKS: usize = 20;

/// Watches the files of a configuration until the watcher is dropped.
#[derive(Debug)]
pub struct ConfigWatcher {
    stop_sender: Option<Sender<NoMessage>>,
    thread: Option<JoinHandle<()>>,
}

/// The type of messages of the stop channel, which has none: the watcher stops when the sender is dropped.
#[derive(Debug)]
enum NoMessage {}

impl ConfigWatcher {
    /// Stops watching, and waits until a reload in progress has called `on_change`.
    pub fn stop(mut self) {
        drop(self.stop_sender.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the callback has been printed by its thread.
            let _ = thread.join();
        }
    }
}

/// Calls `on_change` on its own thread whenever the files or secret files of `running` have changed: with the new
/// configuration, whose warnings name changed settings that need a restart, or with its faults, in which case the
/// running configuration stays.
pub fn watch_config(
    inputs: ConfigInputs,
    running: &Config,
    on_change: impl FnMut(Result<Config, ConfigFaults>) + Send + 'static,
) -> std::io::Result<ConfigWatcher> {
    let (stop, stop_receiver) = mpsc::channel();
    let watch_loop = WatchLoop {
        inputs,
        initial_config: running.clone(),
        fingerprint: running.fingerprint.clone(),
        stop_receiver,
    };
    let thread =
        std::thread::Builder::new().name("config-watch".into()).spawn(move || watch_loop.run(on_change))?;
    Ok(ConfigWatcher { stop_sender: Some(stop), thread: Some(thread) })
}

struct WatchLoop {
    inputs: ConfigInputs,
    /// The configuration at the start of the process, to which settings that cannot change are compared.
    initial_config: Config,
    fingerprint: ConfigFingerprint,
    stop_receiver: Receiver<NoMessage>,
}

impl WatchLoop {
    fn run(mut self, mut on_change: impl FnMut(Result<Config, ConfigFaults>)) {
        while self.wait_unless_stopped(POLL_INTERVAL) {
            let contents = ConfigFileContents::read(&self.inputs);
            if self.fingerprint.recompute(&contents) == self.fingerprint {
                continue;
            }
            let Some(contents) = self.wait_until_stable(contents) else { return };
            let built = build::build_config(&self.inputs, &contents);
            self.fingerprint = built.fingerprint;
            on_change(built.config.map(|config| self.add_needs_restart_warnings(config)));
        }
    }

    /// Waits; `false` if the watcher has been stopped.
    fn wait_unless_stopped(&self, time: Duration) -> bool {
        matches!(self.stop_receiver.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// Waits until the files no longer change and returns their contents; `None` if the watcher has been stopped.
    fn wait_until_stable(&self, mut contents: ConfigFileContents) -> Option<ConfigFileContents> {
        let mut fingerprint = self.fingerprint.recompute(&contents);
        for _ in 0..MAX_STABILITY_CHECKS {
            if !self.wait_unless_stopped(STABLE_INTERVAL) {
                return None;
            }
            contents = ConfigFileContents::read(&self.inputs);
            let now = self.fingerprint.recompute(&contents);
            if now == fingerprint {
                break;
            }
            fingerprint = now;
        }
        Some(contents)
    }

    /// Adds a warning for each changed setting that needs a restart.
    fn add_needs_restart_warnings(&self, mut config: Config) -> Config {
        for setting in config.changed_settings_needing_restart(&self.initial_config) {
            let location = setting
                .split('.')
                .fold(&config.merged_tree, |node: &YamlNode, key| node.get(key).unwrap_or(node));
            let message =
                format!("`{setting}` cannot change while running; it takes effect at the next start");
            config.warnings.push(ConfigWarning::new(&location.location.clone(), message));
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A time far longer than the detection of a change takes, even on a busy machine.
    const CHANGE_DETECTION_TIMEOUT: Duration = Duration::from_secs(60);

    struct WatchedFolder {
        folder: tempfile::TempDir,
        reloads: Receiver<Result<Config, ConfigFaults>>,
        watcher: ConfigWatcher,
    }

    fn start_watching_new_folder(text: &str) -> WatchedFolder {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap();
        std::fs::write(folder.path().join("pointsman.yml"), text).unwrap();
        let inputs = ConfigInputs { working_dir: folder.path().to_owned(), ..ConfigInputs::default() };
        let (reload_sender, reloads) = mpsc::channel();
        let running = inputs.load_config().unwrap();
        let watcher = watch_config(inputs, &running, move |result| drop(reload_sender.send(result))).unwrap();
        WatchedFolder { folder, reloads, watcher }
    }

    impl WatchedFolder {
        fn file_path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Replaces the file as editors do: by renaming a new one.
        fn replace_config_file(&self, text: &str) {
            std::fs::write(self.file_path("new"), text).unwrap();
            std::fs::rename(self.file_path("new"), self.file_path("pointsman.yml")).unwrap();
        }

        fn next_reload(&self) -> Result<Config, ConfigFaults> {
            self.reloads
                .recv_timeout(CHANGE_DETECTION_TIMEOUT)
                .expect("the change is detected within the timeout")
        }
    }

    #[test]
    fn changed_files_are_reloaded_and_faults_reported() {
        let watched = start_watching_new_folder("workers: 1\n");
        watched.replace_config_file("handlers: {a: {run: {command: [sh]}}}\nworkers: 1\n");
        assert_eq!(watched.next_reload().unwrap().handlers.len(), 1);
        std::fs::write(watched.file_path("pointsman.yml"), "handlers: {a: {}}\n").unwrap();
        assert_eq!(watched.next_reload().unwrap_err().len(), 1);
        std::fs::remove_file(watched.file_path("pointsman.yml")).unwrap();
        assert_eq!(watched.next_reload().unwrap().handlers.len(), 0);
        watched.watcher.stop();
        assert!(watched.reloads.try_recv().is_err(), "each change is reported once");
    }

    #[test]
    fn changed_settings_that_need_a_restart_are_warned_about() {
        let watched = start_watching_new_folder("workers: 1\n");
        watched.replace_config_file("workers: 2\nserver: {listen: '127.0.0.1:1'}\n");
        let warnings: Vec<String> =
            watched.next_reload().unwrap().warnings.iter().map(ToString::to_string).collect();
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
    fn a_replaced_secret_file_triggers_a_reload() {
        let text = "handlers: {a: {run: {http: 'https://x.example/', secret: 'file:key'}}}\nevent_handlers: {x: [a]}\n";
        let watched = start_watching_new_folder(text);
        std::fs::write(watched.file_path("key"), "nonsense").unwrap();
        assert_eq!(watched.next_reload().unwrap_err().len(), 1);
        std::fs::write(watched.file_path("key"), "whsec_FxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA").unwrap();
        assert!(watched.next_reload().is_ok());
    }
}
