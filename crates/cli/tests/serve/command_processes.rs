//! The processes of commands: what they can read of the server, and when they end.

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::test_server::{ServerFixture, wait_for_file, wait_until};

/// A command that tries to read /proc files of the server, its parent process.
const INSPECTING_COMMAND_CONFIG: &str = r#"
handlers:
  inspect:
    run:
      command:
        - sh
        - -c
        - |
          for file in environ mem maps fd/0 auxv; do
            if head -c 1 /proc/$PPID/$file >/dev/null 2>&1; then echo "can read $file"; fi
          done
          echo checked $(cat /proc/$PPID/comm)
event_handlers:
  server.inspected: [inspect]
"#;

/// Commands that start a process in its own session and end before it, with and without the inherited environment.
const DETACHING_COMMANDS_CONFIG: &str = r#"
handlers:
  detach: {run: {command: [sh, detach.sh, inherited]}}
  hide: {run: {command: [env, -i, PATH=/usr/bin:/bin, sh, detach.sh, cleared]}}
event_handlers:
  detach: [detach]
  hide: [hide]
"#;

const DETACH_SCRIPT: &str = r#"
setsid sh -c 'echo $$ >"$0"; exec sleep 600' "$1" </dev/null >/dev/null 2>&1 &
until [ -s "$1" ]; do sleep 0.01; done
"#;

/// Commands that print their own capabilities, as the server's user and as another user.
const CAPABILITY_COMMANDS_CONFIG: &str = r#"
handlers:
  own: {run: {command: [grep, "^Cap[IPEA]", /proc/self/status]}}
  other: {run: {command: [grep, "^Cap[IPEA]", /proc/self/status], user: 65533, group: 65533}}
event_handlers:
  own: [own]
  other: [other]
"#;

/// Emits an event, waits until its task has succeeded, and returns its log.
fn emit_and_read_task_log(pointsman: &ServerFixture, event_type: &str) -> String {
    let emitted = pointsman.run_json(&["emit", event_type]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    wait_until("the task has succeeded", || {
        pointsman.run_json(&["tasks", "show", id])["status"] == "SUCCESS"
    });
    pointsman.run_ok(&["tasks", "logs", id])
}

fn read_pid_file(pointsman: &ServerFixture, name: &str) -> Pid {
    wait_for_file(&pointsman.file_path(name));
    Pid::from_raw(std::fs::read_to_string(pointsman.file_path(name)).unwrap().trim().parse().unwrap())
}

fn has_ended(pid: Pid) -> bool {
    kill(pid, None).is_err()
}

#[test]
fn a_command_cannot_inspect_the_server_that_runs_it() {
    let mut pointsman = ServerFixture::new(INSPECTING_COMMAND_CONFIG)
        .with_unprivileged_user()
        .with_env_variable("SHOP_PASSWORD", "hunter2");
    let _node = pointsman.serve();
    let log = emit_and_read_task_log(&pointsman, "server.inspected");
    assert!(log.ends_with("checked pointsman") && !log.contains("can read"), "{log}");
}

#[test]
fn detached_processes_are_killed_after_their_command_and_hidden_ones_when_the_server_stops() {
    // Without privileges there are no control groups, so that processes are found by parent and environment alone.
    let mut pointsman = ServerFixture::new(DETACHING_COMMANDS_CONFIG).with_unprivileged_user();
    std::fs::write(pointsman.file_path("detach.sh"), DETACH_SCRIPT).unwrap();
    let node = pointsman.serve();
    let log = emit_and_read_task_log(&pointsman, "detach");
    assert!(has_ended(read_pid_file(&pointsman, "inherited")));
    assert!(log.ends_with("killed 1 process that the command had left running"), "{log}");
    emit_and_read_task_log(&pointsman, "hide");
    let hidden = read_pid_file(&pointsman, "cleared");
    assert!(node.stop().success());
    assert!(has_ended(hidden));
}

#[test]
fn a_command_user_that_cannot_be_used_is_a_configuration_error() {
    let config = "handlers:\n  a: {run: {command: [true], user: pointsman-no-such-user}}\n";
    let pointsman = ServerFixture::new(config);
    for words in [["config", "check"], ["serve", "--listen=127.0.0.1:0"]] {
        let output = pointsman.run_command(&words);
        assert_eq!(output.status.code(), Some(78), "{words:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("there is no user \"pointsman-no-such-user\" on this machine"), "{stderr}");
    }
    let config = "handlers:\n  a: {run: {command: [true], user: 65534, group: 65534}}\n";
    let output = ServerFixture::new(config).with_unprivileged_user().run_command(&["config", "check"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("this process may not run commands as another user or group"), "{stderr}");
}

#[test]
fn commands_do_not_inherit_the_capabilities_of_the_server() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give capabilities to a server");
        return;
    }
    let needed = "+setuid,+setgid,+chown,+kill,+dac_read_search";
    let (ambient, inheritable) = (format!("--ambient-caps={needed}"), format!("--inh-caps={needed}"));
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups", &inheritable, &ambient, "--"];
    let mut pointsman = ServerFixture::new(CAPABILITY_COMMANDS_CONFIG).with_unprivileged_user();
    let node = pointsman.serve_through("setpriv", &words);
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let server = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    assert_eq!((server("CapPrm:"), server("CapEff:")), ("00000000000000e5", "00000000000000e5"));
    assert_eq!((server("CapAmb:"), server("CapInh:")), ("0000000000000000", "0000000000000000"));
    for event_type in ["own", "other"] {
        let log = emit_and_read_task_log(&pointsman, event_type);
        assert_eq!(log.matches("0000000000000000").count(), 4, "{event_type}: {log}");
    }
    assert!(node.stop().success());
}

#[test]
fn processes_started_before_the_server_outlive_it() {
    let mut pointsman = ServerFixture::new(DETACHING_COMMANDS_CONFIG);
    std::fs::write(pointsman.file_path("detach.sh"), DETACH_SCRIPT).unwrap();
    // The script becomes the server, and its children the server's.
    let script = "sh -c 'sleep 600 & echo $! >below; wait' >/dev/null 2>&1 & echo $! >child
                  until [ -s below ]; do sleep 0.01; done; exec \"$0\" \"$@\"";
    let node = pointsman.serve_through("sh", &["-c", script]);
    emit_and_read_task_log(&pointsman, "detach");
    assert!(node.stop().success());
    assert!(has_ended(read_pid_file(&pointsman, "inherited")));
    for name in ["child", "below"] {
        kill(read_pid_file(&pointsman, name), nix::sys::signal::Signal::SIGKILL).unwrap();
    }
}
