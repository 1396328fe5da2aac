//! `cargo xtask features`: every part of the library and of the binary can be left out. Each combination compiles without
//! warnings, and a program that lacks a part says which feature adds it.

use std::path::Path;

use anyhow::{Context, bail, ensure};

use crate::step::cargo_command;

/// The combinations of features that are compiled, besides the default ones.
const FEATURE_COMBINATIONS: [&str; 7] =
    ["", "sqlite", "postgres", "redis", "http", "sqlite,http", "postgres,redis,http"];

/// Settings that need another feature than `sqlite`, each with the error of a binary that has only `sqlite`.
const MISSING_FEATURE_ERRORS: [(&str, &str); 3] = [
    ("store: 'postgres://me@host/db'", "without the Cargo feature `postgres`"),
    ("store: 'redis://host'", "without the Cargo feature `redis`"),
    ("handlers: {index: {run: {http: 'https://example.com/'}}}", "without the Cargo feature `http`"),
];

/// Compiles each combination, and runs a binary that lacks parts.
pub(crate) fn check_feature_combinations(root: &Path) -> anyhow::Result<()> {
    for package in ["pointsman", "pointsman-cli"] {
        for features in FEATURE_COMBINATIONS {
            eprintln!("{package} with the features [{features}]");
            let arguments =
                ["clippy", "--quiet", "--package", package, "--no-default-features", "--features", features];
            let mut clippy = cargo_command(root, &arguments);
            if !clippy.args(["--", "-D", "warnings"]).status().context("cannot run cargo")?.success() {
                bail!("{package} does not compile without warnings with the features [{features}]");
            }
        }
    }
    check_missing_feature_errors(root)
}

fn check_missing_feature_errors(root: &Path) -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("pointsman-xtask-features-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let checked = MISSING_FEATURE_ERRORS.iter().try_for_each(|(setting, expected_error)| {
        let config = folder.join("pointsman.yml");
        std::fs::write(&config, setting)?;
        let arguments =
            ["run", "--quiet", "--package", "pointsman-cli", "--no-default-features", "--features", "sqlite"];
        let mut check = cargo_command(root, &arguments);
        let output = check.args(["--", "config", "check", "--config"]).arg(&config).output()?;
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && printed.contains(expected_error),
            "`{setting}` is not refused with \"{expected_error}\":\n{printed}"
        );
        Ok(())
    });
    std::fs::remove_dir_all(&folder)?;
    checked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crates that a program with these features of the library compiles.
    fn list_compiled_crates(features: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let arguments = ["tree", "--locked", "--offline", "--package", "pointsman", "--no-default-features"];
        let mut tree = cargo_command(root, &arguments);
        tree.args([
            "--features",
            features,
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{lib}",
        ]);
        let output = tree.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.trim_end_matches(" (*)").into())
            .collect()
    }

    #[test]
    fn a_program_compiles_only_the_clients_that_its_features_need() {
        for (features, expected_clients) in [
            ("sqlite", &["rusqlite"][..]),
            ("postgres", &["tokio_postgres", "rustls"]),
            ("redis", &["redis", "rustls"]),
            ("http", &["reqwest", "rustls"]),
            ("", &[]),
        ] {
            let compiled = list_compiled_crates(features);
            assert!(compiled.iter().any(|name| name == "pointsman"), "{compiled:?}");
            for client in ["rusqlite", "tokio_postgres", "redis", "reqwest", "rustls"] {
                let is_compiled = compiled.iter().any(|name| name == client);
                assert_eq!(is_compiled, expected_clients.contains(&client), "{client} with [{features}]");
            }
        }
    }
}
