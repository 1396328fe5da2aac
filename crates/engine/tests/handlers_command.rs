//! Command handlers, with real processes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod handler_support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use handler_support::{
    claimed_task_with_all_values, claimed_task_without_optional_values, collection_run_task, event_of_task,
    expect_failure, new_delivery, run_attempt,
};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use pointsman_core::store::{AttemptResult, ClaimedTask};
use pointsman_core::task::{LogLevel, LogLine, TaskSubject};
use pointsman_core::{Event, Json};
use pointsman_engine::handlers::command::{
    BadCommand, BadRunAsUser, CommandHandler, CommandSpec, RunAsUser, adopt_orphans,
};
use pointsman_engine::{HandlerOutcome, Runner};

fn shell_handler(script: &str) -> CommandHandler {
    command_handler(&["sh", "-c", script])
}

fn command_handler(argv: &[&str]) -> CommandHandler {
    let argv = argv.iter().map(|argument| argument.to_string()).collect();
    CommandHandler::new(CommandSpec { argv, env: BTreeMap::new(), working_dir: None, run_as: None }).unwrap()
}

async fn run_shell_for_outcome(script: &str) -> HandlerOutcome {
    run_attempt(&shell_handler(script), claimed_task_with_all_values()).await.0
}

async fn run_shell_for_log_lines(script: &str, task: ClaimedTask) -> Vec<String> {
    let (outcome, lines) = run_attempt(&shell_handler(script), task).await;
    assert!(matches!(outcome.result, AttemptResult::Succeeded { .. }), "{outcome:?}");
    lines.into_iter().map(|line| line.message).collect()
}

/// Whether a process has ended. A process that was not reaped yet is a zombie, which has ended too.
fn has_process_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH) || stat.contains(") Z ")
}

/// Waits until a process has ended.
async fn wait_until_process_ended(pid: i32) {
    let wait = async {
        while !has_process_ended(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the process is still running");
}

#[tokio::test]
async fn the_environment_contains_only_documented_variables() {
    // Cargo's variable is in this process's environment and must not be passed on.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let spec = CommandSpec {
        argv: vec!["env".into()],
        env: BTreeMap::from([("SHOP".into(), "open".into()), ("POINTSMAN_TYPE".into(), "forged".into())]),
        working_dir: None,
        run_as: None,
    };
    let (_, lines) = run_attempt(&CommandHandler::new(spec).unwrap(), claimed_task_with_all_values()).await;
    let variables: BTreeMap<_, _> = lines.iter().filter_map(|line| line.message.split_once('=')).collect();
    let variable_names: Vec<_> = variables.keys().copied().collect();
    let mut expected = vec![
        "POINTSMAN_ATTEMPT",
        "POINTSMAN_COLLECTION",
        "POINTSMAN_EFFECTS",
        "POINTSMAN_EVENT_ID",
        "POINTSMAN_FENCE",
        "POINTSMAN_KEY",
        "POINTSMAN_LATE",
        "POINTSMAN_PREV",
        "POINTSMAN_PREV_SENT",
        "POINTSMAN_SOURCE",
        "POINTSMAN_TASK_ID",
        "POINTSMAN_TENANT",
        "POINTSMAN_TYPE",
        "SHOP",
    ];
    expected.extend(["PATH", "HOME", "LANG"].into_iter().filter(|name| std::env::var_os(name).is_some()));
    expected.sort_unstable();
    assert_eq!(variable_names, expected);
    assert_eq!(variables["POINTSMAN_EVENT_ID"], "1478257655827001");
    assert_eq!(variables["POINTSMAN_PREV"], "1478257655000000");
    assert_eq!(variables["POINTSMAN_PREV_SENT"], "5");
    assert_eq!(variables["POINTSMAN_TYPE"], "record.published");
    assert_eq!(variables["POINTSMAN_COLLECTION"], "record.published");
    assert_eq!(variables["POINTSMAN_SOURCE"], "index");
    assert_eq!(variables["POINTSMAN_KEY"], "record: 100% \"ü\"");
    assert_eq!(variables["POINTSMAN_TENANT"], "shop");
    assert_eq!(variables["POINTSMAN_TASK_ID"], claimed_task_with_all_values().id.as_str());
    assert_eq!(variables["POINTSMAN_ATTEMPT"], "2");
    assert_eq!(variables["POINTSMAN_FENCE"], "77");
    assert_eq!(variables["POINTSMAN_LATE"], "true");
}

#[tokio::test]
async fn absent_values_have_no_environment_variable() {
    let script = "env | grep -cE '^POINTSMAN_(KEY|PREV|PREV_SENT|LATE)=' || true";
    assert_eq!(run_shell_for_log_lines(script, claimed_task_without_optional_values()).await, ["0"]);
}

#[tokio::test]
async fn the_event_is_on_stdin_and_reading_it_is_optional() {
    assert_eq!(
        run_shell_for_log_lines("cat", claimed_task_with_all_values()).await,
        [event_of_task(&claimed_task_with_all_values()).to_json()]
    );
    let value = Json::parse(&format!("\"{}\"", "x".repeat(1 << 20))).unwrap();
    let subject =
        TaskSubject::Event(Event { value, ..event_of_task(&claimed_task_with_all_values()) }.into());
    let large_task = ClaimedTask { subject, ..claimed_task_with_all_values() };
    assert_eq!(
        run_shell_for_log_lines("exec <&-; echo stdin closed", large_task.clone()).await,
        ["stdin closed"]
    );
    assert_eq!(run_shell_for_log_lines("echo stdin unread", large_task).await, ["stdin unread"]);
}

#[tokio::test]
async fn a_source_command_receives_its_collection() {
    let stdin = run_shell_for_log_lines("cat", collection_run_task()).await.remove(0);
    let id = collection_run_task().id;
    let expected = serde_json::json!({
        "task_id": id.as_str(), "source": "shop", "collection": "orders", "tenant": "north",
        "planned_at": "2026-01-31T12:00:00.000000Z",
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&stdin).unwrap(), expected);
    let unplanned = ClaimedTask { planned_at: None, ..collection_run_task() };
    assert!(run_shell_for_log_lines("cat", unplanned).await[0].ends_with(r#""planned_at":""}"#));

    let lines = run_shell_for_log_lines("env | grep ^POINTSMAN_ | sort", collection_run_task()).await;
    let variables: BTreeMap<_, _> = lines.iter().filter_map(|line| line.split_once('=')).collect();
    let variable_names: Vec<_> = variables.keys().map(|name| name.trim_start_matches("POINTSMAN_")).collect();
    assert_eq!(variable_names, ["ATTEMPT", "COLLECTION", "EFFECTS", "FENCE", "SOURCE", "TASK_ID", "TENANT"]);
    assert_eq!((variables["POINTSMAN_SOURCE"], variables["POINTSMAN_COLLECTION"]), ("shop", "orders"));
    assert_eq!((variables["POINTSMAN_TENANT"], variables["POINTSMAN_TASK_ID"]), ("north", id.as_str()));
}

#[tokio::test]
async fn arguments_are_not_interpreted_by_a_shell() {
    let (outcome, lines) =
        run_attempt(&command_handler(&["echo", "$HOME; `id`", "*"]), claimed_task_with_all_values()).await;
    assert!(matches!(outcome.result, AttemptResult::Succeeded { result: None }));
    assert_eq!(lines[0].message, "$HOME; `id` *");
}

#[tokio::test]
async fn the_exit_code_decides_the_outcome() {
    assert!(matches!(
        run_shell_for_outcome("exit 0").await.result,
        AttemptResult::Succeeded { result: None }
    ));
    assert_eq!(expect_failure(&run_shell_for_outcome("exit 3").await), ("exit code 3", false));
    let failure_with_stderr =
        run_shell_for_outcome("echo first >&2; echo 'no space left' >&2; echo >&2; exit 1").await;
    assert_eq!(expect_failure(&failure_with_stderr), ("exit code 1: no space left", false));
    assert_eq!(
        expect_failure(&run_shell_for_outcome("kill -KILL $$").await),
        ("killed by signal 9 (SIGKILL)", false)
    );
    let missing_program =
        run_attempt(&command_handler(&["pointsman-no-such-program"]), claimed_task_with_all_values()).await.0;
    let expected = "cannot start \"pointsman-no-such-program\": there is no such program";
    assert_eq!(expect_failure(&missing_program), (expected, false));
}

#[tokio::test]
async fn a_command_runs_in_its_working_directory() {
    let dir = tempfile::tempdir().unwrap();
    let spec = |dir| CommandSpec {
        argv: vec!["pwd".into()],
        env: BTreeMap::new(),
        working_dir: Some(dir),
        run_as: None,
    };
    let (_, lines) =
        run_attempt(&CommandHandler::new(spec(dir.path().into())).unwrap(), claimed_task_with_all_values())
            .await;
    assert_eq!(lines[0].message, dir.path().canonicalize().unwrap().display().to_string());
    let missing_folder = run_attempt(
        &CommandHandler::new(spec(dir.path().join("gone"))).unwrap(),
        claimed_task_with_all_values(),
    )
    .await
    .0;
    assert!(expect_failure(&missing_folder).0.contains("does not exist"), "{missing_folder:?}");
}

#[tokio::test]
async fn a_command_runs_as_its_user_without_supplementary_groups() {
    let run_as = RunAsUser::find(Some("65534"), Some("65533"));
    if !nix::unistd::geteuid().is_root() {
        assert_eq!(run_as, Err(BadRunAsUser::NotPermitted));
        return;
    }
    let script = r#"id -u; id -g; id -G; echo '{"result":1}' >>"$POINTSMAN_EFFECTS"
        stat -c '%u %a' "$POINTSMAN_EFFECTS"; ls "$(dirname "$POINTSMAN_EFFECTS")" 2>/dev/null || echo unlisted
        rm -f "$POINTSMAN_EFFECTS" 2>/dev/null || echo kept"#;
    let argv = vec!["sh".into(), "-c".into(), script.into()];
    let spec = CommandSpec { argv, env: BTreeMap::new(), working_dir: Some("/".into()), run_as: run_as.ok() };
    let (outcome, lines) =
        run_attempt(&CommandHandler::new(spec).unwrap(), claimed_task_with_all_values()).await;
    let lines: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(lines, ["65534", "65533", "65533", "65534 600", "unlisted", "kept"]);
    assert_eq!(outcome.result, AttemptResult::Succeeded { result: Some(Json::parse("1").unwrap()) });
}

#[tokio::test]
async fn a_program_that_its_user_may_not_run_is_reported() {
    let Ok(run_as) = RunAsUser::find(Some("65534"), Some("65534")) else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let argv = vec!["true".into()];
    let spec = CommandSpec {
        argv,
        env: BTreeMap::new(),
        working_dir: Some(dir.path().into()),
        run_as: Some(run_as),
    };
    let outcome = run_attempt(&CommandHandler::new(spec).unwrap(), claimed_task_with_all_values()).await.0;
    let expected = "cannot start \"true\": its user may not execute the program, or may not enter its folder";
    assert_eq!(expect_failure(&outcome), (expected, false));
}

#[tokio::test]
async fn snoozes_last_five_minutes_by_default() {
    for (script, seconds) in [
        ("exit 75", 300),
        (r#"echo '{"snooze":"1h"}' >>"$POINTSMAN_EFFECTS"; exit 75"#, 3600),
        (r#"echo '{"snooze":60}' >>"$POINTSMAN_EFFECTS""#, 60),
    ] {
        let before = jiff::Timestamp::now().as_microsecond();
        let outcome = run_shell_for_outcome(script).await;
        let after = jiff::Timestamp::now().as_microsecond();
        let AttemptResult::Snoozed { until } = outcome.result else { panic!("{outcome:?}") };
        let wait = seconds * 1_000_000;
        assert!((before + wait..=after + wait).contains(&until.micros()), "{script}");
    }
}

#[tokio::test]
async fn effects_are_read_from_a_private_file() {
    let script = r#"
        stat -c %a "$POINTSMAN_EFFECTS" "$(dirname "$POINTSMAN_EFFECTS")"
        echo "$POINTSMAN_EFFECTS"
        echo '{"emit":[{"type":"record.indexed","key":"record:1","value":{"n":1.50}}]}' >>"$POINTSMAN_EFFECTS"
        echo '{"log":["a line in the effects"],"result":{"pages":3}}' >>"$POINTSMAN_EFFECTS""#;
    let (outcome, lines) = run_attempt(&shell_handler(script), claimed_task_with_all_values()).await;
    assert_eq!(
        outcome.result,
        AttemptResult::Succeeded { result: Some(Json::parse(r#"{"pages":3}"#).unwrap()) }
    );
    assert_eq!(outcome.emitted_events.len(), 1);
    assert_eq!(outcome.emitted_events[0].event_type.as_str(), "record.indexed");
    assert_eq!(outcome.emitted_events[0].value.as_str(), r#"{"n":1.50}"#);
    assert_eq!(outcome.emitted_events[0].tenant.as_str(), "shop");
    assert_eq!(outcome.log_lines[0].message, "a line in the effects");
    let lines: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(lines[..2], ["600", "700"]);
    assert!(!std::path::Path::new(lines[2]).parent().unwrap().exists(), "it is removed");
}

#[tokio::test]
async fn invalid_effects_fail_for_good_and_none_is_applied() {
    for (script, expected) in [
        (r#"echo '{"emit":[{"type":"a"},{"type":"b c"}]}' >>"$POINTSMAN_EFFECTS""#, "line 1: /emit/1/type"),
        (
            r#"echo '{"emit":[{"type":"task"}]}' >>"$POINTSMAN_EFFECTS""#,
            "/emit/0/type: task is the name of a frame",
        ),
        (
            r#"printf '{"log":["x"]}\n{"emti":[]}' >>"$POINTSMAN_EFFECTS""#,
            "line 2: /emti: unknown field `emti`",
        ),
        (r#"echo '{"emit":[{"type":"a","tenant":"b"}]}' >>"$POINTSMAN_EFFECTS"; exit 75"#, "/emit/0/tenant"),
        (r#"printf '\377' >>"$POINTSMAN_EFFECTS""#, "not UTF-8"),
        (r#"head -c 5000000 /dev/zero >"$POINTSMAN_EFFECTS""#, "more than 4194304 bytes"),
        (r#"rm "$POINTSMAN_EFFECTS"; mkfifo "$POINTSMAN_EFFECTS""#, "no longer a plain file"),
    ] {
        let outcome = run_shell_for_outcome(script).await;
        let (error, is_permanent) = expect_failure(&outcome);
        assert!(is_permanent && error.contains(expected), "{error}");
        assert!(outcome.log_lines.is_empty());
    }
}

#[tokio::test]
async fn effects_do_not_turn_a_failure_into_a_success() {
    let refused =
        run_shell_for_outcome(r#"echo '{"retry":false,"log":["x"]}' >>"$POINTSMAN_EFFECTS"; exit 2"#).await;
    assert_eq!(expect_failure(&refused), ("exit code 2", true));
    assert_eq!(refused.log_lines[0].message, "x");
    let broken = run_shell_for_outcome(r#"printf '{"emit":[{"ty' >>"$POINTSMAN_EFFECTS"; exit 2"#).await;
    assert_eq!(expect_failure(&broken), ("exit code 2", false));
    assert!(broken.log_lines[0].message.contains("line 1"), "{broken:?}");
}

#[tokio::test]
async fn every_output_line_is_logged_in_order_even_if_identical() {
    let script = "i=0; while [ $i -lt 10000 ]; do echo a line; i=$((i+1)); done; echo last >&2; printf tail";
    let (_, lines) = run_attempt(&shell_handler(script), claimed_task_with_all_values()).await;
    let (info, error): (Vec<LogLine>, Vec<LogLine>) =
        lines.into_iter().partition(|l| l.level == LogLevel::Info);
    assert_eq!(info.len(), 10_001);
    assert!(info[..10_000].iter().all(|line| line.message == "a line"));
    assert_eq!(info[10_000].message, "tail");
    assert!(info.is_sorted_by_key(|line| line.time));
    assert_eq!(error.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["last"]);
    let numbered = run_shell_for_log_lines("seq 1 20000", claimed_task_with_all_values()).await;
    assert!(numbered.iter().enumerate().all(|(index, line)| *line == (index + 1).to_string()));
}

#[tokio::test]
async fn output_that_is_not_utf8_is_replaced() {
    assert_eq!(
        run_shell_for_log_lines(r"printf 'a\000b\377c\n\n\303\251'", claimed_task_with_all_values()).await,
        ["a\u{FFFD}b\u{FFFD}c", "", "é"]
    );
}

#[tokio::test]
async fn output_lines_are_logged_while_the_command_runs() {
    let (delivery, mut lines, cancel) = new_delivery(claimed_task_with_all_values());
    let handler = shell_handler("echo ready; exec sleep 600");
    let running = tokio::spawn(async move { handler.run(delivery).await });
    assert_eq!(lines.recv().await.unwrap().message, "ready");
    assert!(!running.is_finished());
    cancel.cancel();
    let outcome = running.await.unwrap();
    assert_eq!(expect_failure(&outcome), ("cancelled; killed by signal 15 (SIGTERM)", false));
}

/// A script that starts a grandchild, prints its pid and its own, and stays.
const SPAWN_CHILD_SCRIPT: &str = "sleep 600 & echo $!; echo $$; wait";

#[tokio::test]
async fn cancelling_the_attempt_ends_the_whole_process_group() {
    for script in
        [SPAWN_CHILD_SCRIPT.to_owned(), format!("trap '' TERM; {SPAWN_CHILD_SCRIPT}; {SPAWN_CHILD_SCRIPT}")]
    {
        let (delivery, mut lines, cancel) = new_delivery(claimed_task_with_all_values());
        let handler = shell_handler(&script);
        let running = tokio::spawn(async move { handler.run(delivery).await });
        let child: i32 = lines.recv().await.unwrap().message.parse().unwrap();
        let parent: i32 = lines.recv().await.unwrap().message.parse().unwrap();
        cancel.cancel();
        let outcome = running.await.unwrap();
        assert!(expect_failure(&outcome).0.starts_with("cancelled; killed by signal"), "{outcome:?}");
        wait_until_process_ended(child).await;
        wait_until_process_ended(parent).await;
    }
}

#[tokio::test]
async fn dropping_the_attempt_kills_the_whole_process_group() {
    let (delivery, mut lines, _cancel) = new_delivery(claimed_task_with_all_values());
    let handler = shell_handler(&format!("trap '' TERM; {SPAWN_CHILD_SCRIPT}"));
    let running = tokio::spawn(async move { handler.run(delivery).await });
    let child: i32 = lines.recv().await.unwrap().message.parse().unwrap();
    let parent: i32 = lines.recv().await.unwrap().message.parse().unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    wait_until_process_ended(child).await;
    wait_until_process_ended(parent).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_the_output_open_does_not_delay_the_attempt() {
    let (outcome, lines) =
        run_attempt(&shell_handler("sleep 600 & echo $!"), claimed_task_with_all_values()).await;
    assert!(matches!(outcome.result, AttemptResult::Succeeded { .. }), "{outcome:?}");
    wait_until_process_ended(lines[0].message.parse().unwrap()).await;
}

/// A script that starts a process in a session of its own, without the command's streams, and prints its pid.
const SPAWN_DETACHED_SCRIPT: &str = r#"
    setsid sh -c 'echo $$ >"$0"; exec sleep 600' "$POINTSMAN_EFFECTS.pid" \
        </dev/null >/dev/null 2>&1 &
    until [ -s "$POINTSMAN_EFFECTS.pid" ]; do sleep 0.01; done
    cat "$POINTSMAN_EFFECTS.pid""#;

#[tokio::test]
async fn background_processes_end_with_a_command_that_succeeds_or_fails() {
    adopt_orphans().unwrap();
    for (start_script, exit_command) in [
        ("sleep 600 >/dev/null 2>&1 & echo $!", "exit 0"),
        (SPAWN_DETACHED_SCRIPT, "exit 0"),
        (SPAWN_DETACHED_SCRIPT, "exit 1"),
    ] {
        let (_, lines) = run_attempt(
            &shell_handler(&format!("{start_script}\n{exit_command}")),
            claimed_task_with_all_values(),
        )
        .await;
        let pid: i32 = lines[0].message.parse().unwrap();
        assert!(has_process_ended(pid), "{start_script}: process {pid} survives the attempt");
        assert_eq!(lines[1].message, "killed 1 process that the command had left running");
    }
}

#[tokio::test]
async fn a_process_in_its_own_session_ends_with_a_cancelled_attempt() {
    adopt_orphans().unwrap();
    let (delivery, mut lines, cancel) = new_delivery(claimed_task_with_all_values());
    let handler = shell_handler(&format!("{SPAWN_DETACHED_SCRIPT}; sleep 600"));
    let running = tokio::spawn(async move { handler.run(delivery).await });
    let detached: i32 = lines.recv().await.unwrap().message.parse().unwrap();
    cancel.cancel();
    let outcome = running.await.unwrap();
    assert_eq!(expect_failure(&outcome), ("cancelled; killed by signal 15 (SIGTERM)", false));
    wait_until_process_ended(detached).await;
}

#[tokio::test]
async fn a_process_in_its_own_session_ends_with_a_dropped_attempt() {
    adopt_orphans().unwrap();
    let (delivery, mut lines, _cancel) = new_delivery(claimed_task_with_all_values());
    let handler = shell_handler(&format!("{SPAWN_DETACHED_SCRIPT}; sleep 600"));
    let running = tokio::spawn(async move { handler.run(delivery).await });
    let detached: i32 = lines.recv().await.unwrap().message.parse().unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    wait_until_process_ended(detached).await;
}

#[tokio::test]
async fn a_detached_process_that_keeps_the_output_open_does_not_delay_the_attempt() {
    adopt_orphans().unwrap();
    // The command ends only after its child has printed its pid.
    let script = r#"mkfifo "$POINTSMAN_EFFECTS.fifo"
        setsid sh -c 'echo $$; echo >"$0"; exec sleep 600' "$POINTSMAN_EFFECTS.fifo" &
        read -r _ <"$POINTSMAN_EFFECTS.fifo""#;
    let (outcome, lines) = run_attempt(&shell_handler(script), claimed_task_with_all_values()).await;
    assert!(matches!(outcome.result, AttemptResult::Succeeded { .. }), "{outcome:?}");
    wait_until_process_ended(lines[0].message.parse().unwrap()).await;
}

#[tokio::test]
async fn an_attempt_does_not_kill_processes_of_other_attempts() {
    adopt_orphans().unwrap();
    let (delivery, mut lines, cancel) = new_delivery(claimed_task_with_all_values());
    let handler = shell_handler(&format!("{SPAWN_DETACHED_SCRIPT}; sleep 600"));
    let running = tokio::spawn(async move { handler.run(delivery).await });
    let detached: i32 = lines.recv().await.unwrap().message.parse().unwrap();
    let (outcome, _) =
        run_attempt(&shell_handler(SPAWN_DETACHED_SCRIPT), claimed_task_with_all_values()).await;
    assert!(matches!(outcome.result, AttemptResult::Succeeded { .. }), "{outcome:?}");
    assert!(!has_process_ended(detached) && !running.is_finished());
    cancel.cancel();
    running.await.unwrap();
    wait_until_process_ended(detached).await;
}

#[tokio::test]
async fn a_cancelled_attempt_starts_no_command() {
    let (delivery, mut lines, cancel) = new_delivery(claimed_task_with_all_values());
    cancel.cancel();
    let outcome = shell_handler("echo started").run(delivery).await;
    assert!(expect_failure(&outcome).0.contains("cancelled"));
    assert!(lines.recv().await.is_none());
}

#[test]
fn invalid_command_specs_are_refused() {
    let new = |argv: &[&str], env: &[(&str, &str)]| {
        let argv = argv.iter().map(|a| a.to_string()).collect();
        let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        CommandHandler::new(CommandSpec { argv, env, working_dir: None, run_as: None })
            .map(|handler| handler.handler_kind())
    };
    assert_eq!(new(&["true"], &[("A", "b=c")]), Ok("command"));
    assert_eq!(new(&[], &[]), Err(BadCommand::NoProgram));
    assert_eq!(new(&[""], &[]), Err(BadCommand::NoProgram));
    assert_eq!(new(&["a", "b\0"], &[]), Err(BadCommand::NulInArgument));
    assert_eq!(new(&["a"], &[("A=B", "")]), Err(BadCommand::InvalidVariable("A=B".into())));
}
