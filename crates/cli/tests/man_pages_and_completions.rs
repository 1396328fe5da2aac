//! Manual pages and completions.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run_pointsman(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pointsman")).args(words).env("COLUMNS", "100").output().unwrap()
}

fn to_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The subcommands that the help lists.
fn list_subcommands(words: &[&str]) -> Vec<String> {
    let help = to_text(&run_pointsman(&[words, &["-h"]].concat()).stdout);
    let list =
        help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(Into::into).collect()
}

/// Renders a page as `man` prints it. None if groff is not installed.
fn render_page_with_groff(page: &Path) -> Option<String> {
    let groff =
        Command::new("groff").args(["-man", "-Tutf8", "-ww", "-P-c", "-rLL=90n"]).arg(page).output().ok()?;
    assert_eq!(to_text(&groff.stderr), "", "{}", page.display());
    // Bold and underlined letters are written twice, with a backspace between.
    let mut shown = String::new();
    for c in to_text(&groff.stdout).chars() {
        if c == '\u{8}' { shown.pop().map_or((), drop) } else { shown.push(c) }
    }
    Some(shown)
}

#[test]
fn man_writes_a_page_with_every_section_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("man1");
    let output = run_pointsman(&["man", "--dir", dir.to_str().unwrap()]);
    assert!(output.status.success(), "{}", to_text(&output.stderr));
    let mut pages = vec!["pointsman.1".to_owned()];
    for command in list_subcommands(&[]) {
        pages.push(format!("pointsman-{command}.1"));
        pages.extend(list_subcommands(&[&command]).iter().map(|sub| format!("pointsman-{command}-{sub}.1")));
    }
    assert!(pages.len() > 50 && pages.contains(&"pointsman-tasks-logs.1".into()), "{pages:?}");
    let mut written: Vec<String> =
        dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    written.sort();
    pages.sort();
    assert_eq!(written, pages);

    for page in &pages {
        let written = std::fs::read_to_string(dir.join(page)).unwrap();
        assert!(written.is_ascii(), "{page}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS"] {
            let sections =
                written.lines().filter(|line| line.trim_start_matches(".SH ").trim_matches('"') == section);
            assert_eq!(sections.count(), 1, "{page} has one section {section}:\n{written}");
        }
    }
    let Some(list) = render_page_with_groff(&dir.join("pointsman-tasks-list.1")) else { return };
    assert!(
        list.lines().any(|line| line.trim() == "pointsman tasks list --key record:1 --limit 10"),
        "{list}"
    );
    assert!(list.contains("75   the server or its store is not available; try again later\n"), "{list}");
    for page in &pages {
        render_page_with_groff(&dir.join(page));
    }
}

#[test]
fn man_prints_the_page_of_a_command() {
    let page = |words: &[&str]| to_text(&run_pointsman(&[&["man"], words].concat()).stdout);
    assert!(page(&[]).contains(".TH pointsman 1"));
    assert!(page(&["tasks", "list"]).contains(".TH pointsman-tasks-list 1"));
    let wrong = run_pointsman(&["man", "tasks", "lst"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(to_text(&wrong.stderr).contains("did you mean `list`?"), "{}", to_text(&wrong.stderr));
}

/// The completions that bash offers after these words.
fn list_bash_completions(words: &[&str]) -> Vec<String> {
    let line = r#"
        source <("$0" completions bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _pointsman pointsman "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let program = env!("CARGO_BIN_EXE_pointsman");
    let mut bash = Command::new("bash");
    let bash = bash.args(["--norc", "-c", line, program]).args(words).stdin(Stdio::null()).output().unwrap();
    assert_eq!(to_text(&bash.stderr), "");
    to_text(&bash.stdout).lines().map(Into::into).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    assert_eq!(list_bash_completions(&["pointsman", "ta"]), ["tasks"]);
    assert_eq!(list_bash_completions(&["pointsman", "tasks", "re"]), ["retry", "redrive"]);
    assert_eq!(list_bash_completions(&["pointsman", "emit", "--idem"]), ["--idempotency-key"]);
    assert_eq!(list_bash_completions(&["pointsman", "tasks", "--output", ""]), ["table", "json"]);
    assert_eq!(list_bash_completions(&["pointsman", "chains", "node", "/a", "b", "ne"]), ["next_state"]);
}

#[test]
fn completions_exist_for_zsh_fish_and_elvish() {
    for (shell, sign) in
        [("zsh", "#compdef pointsman"), ("fish", "complete -c pointsman"), ("elvish", "edit:completion")]
    {
        let script = run_pointsman(&["completions", shell]);
        assert!(script.status.success() && to_text(&script.stdout).contains(sign), "{shell}");
    }
    let wrong = run_pointsman(&["completions", "bsh"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(to_text(&wrong.stderr).contains("'bash'"), "{}", to_text(&wrong.stderr));
}

/// Checks the scripts of zsh and fish; skips a shell that is not installed.
#[test]
fn installed_shells_accept_their_completion_script() {
    for shell in ["zsh", "fish"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        std::fs::write(&file, run_pointsman(&["completions", shell]).stdout).unwrap();
        let Ok(read) = Command::new(shell).arg("-n").arg(&file).output() else { continue };
        assert!(read.status.success(), "{shell}: {}", to_text(&read.stderr));
    }
}
